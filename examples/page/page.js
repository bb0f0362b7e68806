// What the page shows and does. All text from models is set as text, never as HTML.
import { Team, apply } from "./team.js";

const $ = (id) => document.getElementById(id);
const pollEvery = 2000; // milliseconds between two looks at the tasks

let team = null; // the session that is open
let agents = {}; // by id, in the form of /team/history
let leave = null; // ends the stream that is read

const element = (tag, kind, text) => {
  const e = document.createElement(tag);
  e.className = kind;
  e.textContent = text;
  return e;
};

function tell(text) {
  $("state").textContent = text;
}

// guarded returns f as a handler that tells what goes wrong.
const guarded = (f) => async (event) => {
  event?.preventDefault?.();
  try {
    await f();
  } catch (problem) {
    if (problem.name !== "AbortError") tell(problem.message);
  }
};

function words(block) {
  switch (block.kind) {
    case "tool_call":
      return `${block.name} ${block.args}${block.result === null ? "" : "\n→ " + block.result}`;
    case "team_message":
      return `${block.from}: ${block.content}`;
    case "error":
      return block.message;
  }
  return block.content;
}

function showAgents() {
  $("agents").replaceChildren(
    ...Object.values(agents).map((agent) => {
      const box = element("section", agent.isActive ? "agent active" : "agent", "");
      box.append(element("h3", "", `${agent.agentId} (${agent.roleName})`));
      for (const block of agent.blocks) box.append(element("div", `block ${block.kind}`, words(block)));
      return box;
    }),
  );
  const chosen = $("to").value;
  const names = ["leader", ...Object.keys(agents).filter((id) => id !== "leader" && id !== "user")];
  $("to").replaceChildren(...names.map((id) => element("option", "", id)));
  $("to").value = names.includes(chosen) ? chosen : "leader";
}

async function showTasks() {
  const tasks = await team.tasks();
  $("tasks").replaceChildren(
    ...tasks.map((task) => {
      const row = element("tr", "", "");
      const status = task.is_blocked ? "blocked" : task.status;
      row.append(...[task.task_id, status, task.title, task.assignee_agent_id ?? ""].map((text) => element("td", "", text)));
      return row;
    }),
  );
}

// attend shows what a stream tells until it ends, and the tasks meanwhile.
async function attend(stream) {
  leave?.abort();
  const mine = (leave = new AbortController());
  const poll = setInterval(() => showTasks().catch((problem) => tell(problem.message)), pollEvery);
  tell("The team is at work.");
  try {
    await stream((envelope) => {
      if (leave !== mine) return;
      apply(agents, envelope);
      showAgents();
    }, mine.signal);
    if (leave === mine) tell("The team has ended its work.");
  } finally {
    clearInterval(poll);
    if (leave === mine) await showTasks();
  }
}

// open shows a session as it is, and goes on with it if its team is at work.
async function open() {
  team = new Team($("url").value, $("token").value, $("user").value, $("session").value);
  leave?.abort();
  const { snapshot, event_count: after } = await team.history();
  agents = snapshot;
  showAgents();
  await showTasks();
  tell("Nothing is under way.");
  const { running } = await team.status();
  if (running) await attend((each, signal) => team.follow(after, each, signal));
}

async function start() {
  if (!team) await open();
  const text = $("text").value;
  $("text").value = "";
  await attend((each, signal) => team.start(text, each, signal));
}

async function send() {
  await team.send($("text").value, $("to").value);
  $("text").value = "";
}

$("where").addEventListener("submit", guarded(open));
$("say").addEventListener("submit", guarded(start));
$("send").addEventListener("click", guarded(send));
$("stop").addEventListener("click", guarded(() => team.stop()));
