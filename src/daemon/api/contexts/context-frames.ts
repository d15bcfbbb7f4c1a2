import { Type } from 'typebox';
import { invalidField } from '../../../contract/errors.ts';
import { closedObject } from '../../../contract/schema/field.ts';
import { PtySizeBody } from '../../../contract/schema/process-request.ts';
import { type AttachFrames, checkedFrame, frameObject } from '../attach-frame.ts';
import { endOf } from './context-view.ts';

/** Clients number what they send; nothing is answered to it but output. */
const id = { requestId: Type.Optional(Type.String()), request_id: Type.Optional(Type.String()) };
const Input = closedObject({ data: Type.String(), ...id });
const Resize = closedObject({ ...PtySizeBody.properties, ...id });
const Signal = closedObject({ signal: Type.String(), ...id });
const TYPES = ['input', 'resize', 'signal'];

/** The frames of a context's WebSocket. Source: contract section 4, GET `/contexts/{id}/ws`. */
export const CONTEXT_FRAMES: AttachFrames = {
  parse(data, is_binary) {
    const { type, ...frame } = frameObject(data, is_binary);
    switch (type) {
      case 'input':
        return { type: 'stdin', data: Buffer.from(checkedFrame(Input, frame).data, 'utf8') };
      case 'resize': {
        const { rows, cols } = checkedFrame(Resize, frame, 'resize.');
        return { type, size: { rows, cols } };
      }
      case 'signal':
        return { type, signal: checkedFrame(Signal, frame).signal };
      default:
        throw invalidField('type', `must be one of ${TYPES.join(', ')}`);
    }
  },
  output: ({ stream, data }) =>
    JSON.stringify({ type: 'output', source: stream, data: data.toString('utf8') }),
  exit: (process) => JSON.stringify({ type: 'done', ...endOf(process) }),
  error: ({ message }) => JSON.stringify({ type: 'error', error: message }),
};
