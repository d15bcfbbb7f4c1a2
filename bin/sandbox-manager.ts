#!/usr/bin/env -S node --disable-sigusr1
import { refuseInspector } from '../src/base/engine/inspector.ts';

// Before the rest is loaded, which takes a while.
refuseInspector();
void import('./sandbox-manager-options.ts').then(({ main }) => main(process.argv));
