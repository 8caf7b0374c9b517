/** Reads server-sent events as the HTML standard writes them, one line of data each. */
export interface Event {
  id?: string;
  event?: string;
  data?: string;
}

/** Reads events until one of this name. */
export async function eventsUntil(answer: Response, name: string): Promise<Event[]> {
  const events: Event[] = [];
  let text = "";
  for await (const part of answer.body ?? []) {
    text += new TextDecoder().decode(part);
    for (let at = text.indexOf("\n\n"); at >= 0; at = text.indexOf("\n\n")) {
      const lines = text
        .slice(0, at)
        .split("\n")
        .map((line) => line.split(/: (.*)/s));
      text = text.slice(at + 2);
      events.push(Object.fromEntries(lines) as Event);
      if (events.at(-1)?.event === name) return events;
    }
  }
  return events;
}
