// Serves one file from memory; see node.rs for the settings.
"use strict";
const fs = require("fs");
const zlib = require("zlib");
const set = JSON.parse(process.argv[2]);
const body = fs.readFileSync(set.file);
const [kind, ...numbers] = set.handler.split(":");
const [first, second] = numbers.map(Number);
let requests = 0;

function answer(request, response) {
  for (const [name, value] of set.padding) response.setHeader(name, value);
  if (!set.keepalive) response.setHeader("Connection", "close");
  response.setHeader("Content-Type", "text/html");
  let sent = body;
  if (set.gzip !== null && /gzip/.test(request.headers["accept-encoding"] || "")) {
    sent = zlib.gzipSync(body, { level: set.gzip });
    response.setHeader("Content-Encoding", "gzip");
  }
  response.setHeader("Content-Length", sent.length);
  response.end(sent);
}

function handle(request, response) {
  requests += 1;
  if (kind === "burns") {
    const until = process.hrtime.bigint() + BigInt(first) * 1000n;
    while (process.hrtime.bigint() < until);
  }
  // Timers of Node have a resolution of a millisecond.
  let wait = 0;
  if (kind === "sleeps") wait = first / 1000;
  if (kind === "slow-share" && requests % first === 0) wait = second / 1000;
  if (wait > 0) setTimeout(answer, wait, request, response);
  else answer(request, response);
}

const server = set.tls
  ? require("https").createServer({
      key: fs.readFileSync(set.tls.key),
      cert: fs.readFileSync(set.tls.cert),
      minVersion: "TLSv1.2",
      maxVersion: set.tls.latest,
      ...(set.tls.group ? { ecdhCurve: set.tls.group } : {}),
    }, handle)
  : require("http").createServer(handle);
server.keepAliveTimeout = 600000;
server.headersTimeout = 660000;
server.requestTimeout = 0;
server.listen({ host: set.host, port: set.port, backlog: set.backlog });
