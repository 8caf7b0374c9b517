/** Joins its standard input and output to a unix socket: ssh's way to a port of a VM. */
import { connect } from "node:net";

const socket = connect({ path: process.argv[2] ?? "" });
process.stdin.pipe(socket);
socket.pipe(process.stdout);
socket.on("close", () => process.exit(0));
