// Requests from stdin and replies to stdout, as `workers.py` speaks: JSON, each preceded by its length (8 bytes).
import fs from "node:fs";

function send(reply) {
  const body = Buffer.from(JSON.stringify(reply));
  const frame = Buffer.alloc(8 + body.length);
  frame.writeBigUInt64BE(BigInt(body.length));
  body.copy(frame, 8);
  for (let at = 0; at < frame.length; ) {
    try {
      at += fs.writeSync(1, frame, at);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

// `answer(request)` gives the reply, to which the walls that are missing are added. Ends the process with the requests.
export async function serve(answer, walls) {
  let received = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    received = received.length ? Buffer.concat([received, chunk]) : chunk;
    while (received.length >= 8 && received.length >= 8 + Number(received.readBigUInt64BE())) {
      const size = Number(received.readBigUInt64BE());
      const request = JSON.parse(received.subarray(8, 8 + size));
      received = received.subarray(8 + size);
      send({ ...(await answer(request)), missing_walls: walls, nonce: request.nonce });
    }
  }
  process.exit(0);
}
