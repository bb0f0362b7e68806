// Runs page.js in Node, as a browser would, and tells what it shows. Arguments: the folder
// of the page, and the API's address, its token, and a goal.
const [dir, url, token, goal] = process.argv.slice(2);

class Element {
  constructor(tag) {
    Object.assign(this, { tag, value: "", className: "", text: "", children: [], handlers: {} });
  }
  set textContent(text) {
    this.text = text;
    this.children = [];
  }
  get textContent() {
    return this.text + this.children.map((c) => c.textContent).join("");
  }
  append(...children) {
    this.children.push(...children);
  }
  replaceChildren(...children) {
    this.children = children;
  }
  addEventListener(type, f) {
    this.handlers[type] = f;
  }
  fire(type) {
    return this.handlers[type]({ preventDefault() {} });
  }
}

const byID = {};
globalThis.document = {
  getElementById: (id) => (byID[id] ??= new Element(id)),
  createElement: (tag) => new Element(tag),
};
const $ = document.getElementById;

await import(`${dir}/page.js`);
Object.assign($("url"), { value: url + "/" });
Object.assign($("token"), { value: token });
Object.assign($("user"), { value: "page" });
Object.assign($("session"), { value: "1" });
const seen = [];
const note = () => seen.push($("state").textContent);

await $("where").fire("submit"); // a session that nobody knows
note();
$("text").value = goal;
await $("say").fire("submit"); // until the goal has ended
note();
const live = $("agents").textContent;
await $("where").fire("submit"); // as it is after a reload
note();
$("text").value = "one word more";
await $("send").fire("click"); // which is refused
note();
await $("stop").fire("click");
$("token").value = "wrong";
await $("where").fire("submit");
note();

console.log(JSON.stringify({ seen, live, again: $("agents").textContent, tasks: $("tasks").textContent, to: $("to").textContent }));
