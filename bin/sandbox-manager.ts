#!/usr/bin/env node
import { main } from './sandbox-manager-options.ts';

void main(process.argv);
