// What listens on a port, here and in a sandbox: `GET /N` is answered with N bytes, and WebSocket messages with themselves.
const { createHash } = require('node:crypto');
const { createServer } = require('node:http');

const PIECE = Buffer.alloc(256 * 1024, 'x');
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

const server = createServer((request, response) => {
  let left = Number(request.url.slice(1));
  response.writeHead(200, { 'content-length': left });
  const more = () => {
    while (left > 0) {
      const piece = left < PIECE.length ? PIECE.subarray(0, left) : PIECE;
      left -= piece.length;
      if (!response.write(piece)) return void response.once('drain', more);
    }
    response.end();
  };
  more();
});

/** The frames of one piece of input, answered together; the beginning of another is kept. */
function echo(input, answers) {
  let at = 0;
  while (input.length - at >= 2) {
    const short = input[at + 1] & 127;
    const head = short === 126 ? 4 : 2;
    if (input.length - at < head) break;
    const length = short === 126 ? input.readUInt16BE(at + 2) : short;
    const end = at + head + 4 + length;
    if (input.length < end) break;
    const frame = Buffer.allocUnsafe(head + length);
    frame[0] = input[at];
    frame[1] = short;
    if (head === 4) frame.writeUInt16BE(length, 2);
    for (let i = 0; i < length; i++) frame[head + i] = input[at + head + 4 + i] ^ input[at + head + (i & 3)];
    answers.push(frame);
    at = end;
  }
  return input.subarray(at);
}

server.on('upgrade', (request, socket) => {
  const accept = createHash('sha1')
    .update(request.headers['sec-websocket-key'] + GUID)
    .digest('base64');
  const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  socket.write([...head, `Sec-WebSocket-Accept: ${accept}`, '', ''].join('\r\n'));
  socket.setNoDelay(true);
  let rest = Buffer.alloc(0);
  socket.on('error', () => {});
  socket.on('data', (piece) => {
    const answers = [];
    rest = echo(rest.length > 0 ? Buffer.concat([rest, piece]) : piece, answers);
    socket.write(Buffer.concat(answers));
  });
});
server.listen(Number(process.argv[2]), '127.0.0.1', () => console.log(server.address().port));
