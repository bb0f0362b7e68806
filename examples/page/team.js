// A session of a team over HTTP, by the /team endpoints. No page is needed for it.

// Refused says that a request was refused, and why.
export class Refused extends Error {
  constructor(status, body) {
    let detail = body;
    try {
      detail = JSON.parse(body).detail ?? body;
    } catch {
      // it is no JSON: told as it is
    }
    super(`${status}: ${typeof detail === "string" ? detail : JSON.stringify(detail)}`);
    this.status = status;
  }
}

export class Team {
  constructor(url, token, user, session) {
    this.url = url.replace(/\/+$/, "");
    this.token = token;
    this.names = { user_id: user, session_id: session };
  }

  async request(method, path, { query, body, signal } = {}) {
    const headers = { Authorization: `Bearer ${this.token}` };
    if (body) headers["Content-Type"] = "application/json";
    const at = this.url + path + (query ? "?" + new URLSearchParams({ ...this.names, ...query }) : "");
    const answer = await fetch(at, { method, headers, signal, body: body && JSON.stringify({ ...this.names, ...body }) });
    if (!answer.ok) throw new Refused(answer.status, await answer.text());
    return answer;
  }

  async get(path, query = {}) {
    return (await this.request("GET", path, { query })).json();
  }

  async post(path, body = {}) {
    return (await this.request("POST", path, { body })).json();
  }

  history() {
    return this.get("/team/history");
  }

  status() {
    return this.get("/team/status");
  }

  tasks() {
    return this.get("/team/tasks");
  }

  send(content, to) {
    return this.post("/team/user-message", { content, to_agent_id: to });
  }

  stop() {
    return this.post("/team/stop");
  }

  // start sets a goal and calls each for what happens, until the goal has ended.
  async start(message, each, signal) {
    await frames(await this.request("POST", "/team/stream", { body: { message }, signal }), each);
  }

  // follow calls each for what happens behind the first `after` envelopes.
  async follow(after, each, signal) {
    await frames(await this.request("GET", "/team/subscribe", { query: { after }, signal }), each);
  }
}

// frames reads an event stream: each frame is one line of data. It ends with a frame of
// type complete, or throws.
async function frames(answer, each) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the stream broke off");
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue;
      const frame = JSON.parse(line.slice("data: ".length));
      if (frame.type === "complete") return;
      if (frame.type === "error") throw new Error(frame.error);
      each(frame.envelope);
    }
  }
}

// apply takes an envelope into what is shown: agents by id, in the form of /team/history. It
// returns the agent that has changed.
export function apply(agents, { agent_id: id, role_name: role, event }) {
  const agent = (agents[id] ??= { agentId: id, roleName: id, blocks: [], isActive: true });
  if (role && role !== "user") agent.roleName = role;
  agent.isActive = event.type !== "RUN_FINISHED" && event.type !== "RUN_ERROR";
  const last = agent.blocks.at(-1);
  const call = agent.blocks.findLast((b) => b.kind === "tool_call" && b.id === event.tool_call_id);
  switch (event.type) {
    case "TEXT_MESSAGE_CONTENT":
      if (last?.kind === "text") last.content += event.delta;
      else agent.blocks.push({ kind: "text", content: event.delta });
      break;
    case "TOOL_CALL_START":
      agent.blocks.push({ kind: "tool_call", id: event.tool_call_id, name: event.tool_call_name, args: "", result: null });
      break;
    case "TOOL_CALL_ARGS":
      if (call) call.args += event.delta;
      break;
    case "TOOL_CALL_RESULT":
      if (call) call.result = event.content;
      break;
    case "USER_MESSAGE":
      agent.blocks.push({ kind: "user_message", content: event.content });
      break;
    case "TEAM_MESSAGE":
      agent.blocks.push({ kind: "team_message", from: event.from_agent_id, content: event.content });
      break;
    case "RUN_ERROR":
      agent.blocks.push({ kind: "error", message: event.message });
      break;
  }
  return agent;
}
