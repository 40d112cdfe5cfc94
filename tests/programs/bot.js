// A program as an agent: the lowest legal action, and a count of what it is told.
const readline = require("readline");
const answer = (message) => console.log(JSON.stringify(message));
let eventsSeen = [];

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.type === "hello") {
    answer({ version: message.version });
  } else if (message.type === "begin") {
    eventsSeen = message.slots.map(() => 0);
  } else if (message.type === "act") {
    message.slots.forEach((slot, row) => {
      eventsSeen[slot] += message.events[row].length;
    });
    answer({ actions: message.legal.map((legal) => Math.min(...legal)) });
  }
});
