package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"agentteam/pkg/teamtest/testenv"
)

// chromium is the browser of this machine. Without one the test is skipped, and in CI it fails.
func chromium(t *testing.T) string {
	t.Helper()
	return testenv.Program(t, "chromium", "chromium-browser", "google-chrome")
}

// browser is a headless Chromium with a profile of its own.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// openBrowser starts one, which ends with the test.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, // in containers Chromium runs as root
		chromedp.WSURLReadTimeout(limit), chromedp.WindowSize(1280, 900))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() { cancel(); stop() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return &browser{t, ctx}
}

// tab is a page in a browser. What its console reports as an error, a violation of its policy and an
// exception fail the test, unless it was said to be expected.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string
	tapped int // how often a finger has touched a control

	mu       sync.Mutex
	reports  []string
	expected []string
	outside  []string // requests to elsewhere
}

// tab opens a tab without a page.
func (b *browser) tab() *tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	p := &tab{t: b.t, ctx: ctx}
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		b.t.Fatal(err)
	}
	devtools(p, runtime.Enable, cdp.Empty{})
	devtools(p, log.Enable, cdp.Empty{})
	devtools(p, network.Enable, network.EnableParams{})
	devtools(p, page.Enable, page.EnableParams{})
	b.t.Cleanup(p.clean)
	return p
}

func (p *tab) hear(e any) {
	report := ""
	switch e := e.(type) {
	case *runtime.EventExceptionThrown:
		report = "exception: " + (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			report = "console: "
			for _, a := range e.Args {
				report += string(a.Value) + a.Description + " "
			}
		}
	case *log.EventEntryAdded:
		// A browser reports each answer of a failure; what is not there the page itself shows.
		missing := e.Entry.Source == "network" && (strings.Contains(e.Entry.Text, "404") || strings.Contains(e.Entry.Text, "409"))
		if (e.Entry.Level == "error" || e.Entry.Level == "warning") && !missing {
			report = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		p.mu.Lock()
		if p.origin != "" && !strings.HasPrefix(e.Request.URL, p.origin+"/") {
			p.outside = append(p.outside, e.Request.URL)
		}
		p.mu.Unlock()
	case *page.EventJavascriptDialogOpening:
		report = "dialog: " + e.Message
	}
	if report != "" {
		p.mu.Lock()
		p.reports = append(p.reports, report)
		p.mu.Unlock()
	}
}

// expects has reports that contain words fail the test no more.
func (p *tab) expects(words ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, words...)
}

// clean fails the test for what the page should not have done.
func (p *tab) clean() {
	p.mu.Lock()
	defer p.mu.Unlock()
next:
	for _, r := range p.reports {
		for _, words := range p.expected {
			if strings.Contains(r, words) {
				continue next
			}
		}
		p.t.Errorf("the page reports %s", r)
	}
	for _, url := range p.outside {
		p.t.Errorf("the page has asked for %s", url)
	}
}

// do has the browser do something.
func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.fatalf("%v", err)
	}
}

// devtools has the browser carry out a command of its protocol.
func devtools[P, R any](p *tab, cmd cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	r, err := chromedp.Call(ctx, cmd, params)
	if err != nil {
		p.t.Fatalf("%s: %v", cmd.Method, err)
	}
	return r
}

// eval returns the value of an expression in the page.
func eval[T any](p *tab, js string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", js, err)
	}
	return v
}

func (p *tab) fatalf(format string, args ...any) {
	p.t.Helper()
	p.shot("failed")
	p.t.Fatalf("%s; at %s the page shows\n%s", fmt.Sprintf(format, args...), eval[string](p, "location.hash"), p.text())
}

// open has the tab show the page of the cluster, logged in by a code of the user.
func (p *tab) open(c *cluster) {
	p.t.Helper()
	login := strings.TrimSpace(c.ok("web", "--no-open"))
	p.login(login)
}

func (p *tab) login(address string) {
	p.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.origin = u.Scheme + "://" + u.Host
	p.mu.Unlock()
	p.do(chromedp.Navigate(address))
	p.until("the page is there", `document.querySelector("main#main") !== null`)
}

// goTo shows a view, by what stands behind the # of its address.
func (p *tab) goTo(hash string) {
	p.t.Helper()
	eval[string](p, "location.hash = "+quoted(hash))
}

func quoted(s string) string {
	data, _ := json.Marshal(s) // a string is JSON
	return string(data)
}

// text is what a person can read in the page.
func (p *tab) text() string { return eval[string](p, "document.body.innerText") }

// until waits until an expression holds in the page.
func (p *tab) until(what, js string) {
	p.t.Helper()
	p.untilSo(what, func() bool { return eval[bool](p, "(async () => !!(await ("+js+")))()") })
}

// untilSo is until for what is not seen in one expression.
func (p *tab) untilSo(what string, holds func() bool) {
	p.t.Helper()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(limit); !holds(); {
		select {
		case <-tick.C:
		case <-late:
			p.fatalf("waited in vain: %s", what)
		}
	}
}

// sees waits until the page shows a text, in capitals or not: the style of headings changes that.
func (p *tab) sees(text string) {
	p.t.Helper()
	p.until("the page shows "+text, "document.body.innerText.toLowerCase().includes("+quoted(strings.ToLower(text))+")")
}

// asked waits until something with a text can be decided: the stream may show the same text earlier, and
// the page what is asked before it knows what one may do.
func (p *tab) asked(text string) {
	p.t.Helper()
	p.until("the inbox has "+text, `[...document.querySelectorAll(".ask")].some((e) => e.querySelector("button, textarea") && e.textContent.includes(`+quoted(text)+`))`)
}

// find is JavaScript that finds what a person would press: a control whose name begins with these
// words, in the part that a selector names.
const find = `((name, within) => {
  const nameOf = (e) => (e.getAttribute("aria-label") || [...e.childNodes].filter((n) => n.nodeName !== "KBD").map((n) => n.textContent).join("")).trim()
  const all = [...(within ? document.querySelector(within) || document.createElement("p") : document).querySelectorAll("button, a, summary, input, textarea, select, label, [role=button], [role=menuitem], [tabindex]")]
  return all.find((e) => nameOf(e).startsWith(name) && e.getClientRects().length && !e.disabled)
})`

// presses clicks with the pointer on the control of that name, once it is there.
func (p *tab) presses(name string, within ...string) {
	p.t.Helper()
	p.meets(func(x, y float64) { p.do(chromedp.MouseClickXY(x, y)) }, name, within...)
}

// meets has press click on the control of that name, once it is there. What comes in meanwhile may move it: it
// has to stand still for two frames, and is clicked on again if the click has missed it.
func (p *tab) meets(press func(x, y float64), name string, within ...string) {
	p.t.Helper()
	at := find + "(" + quoted(name) + ", " + quoted(strings.Join(within, "")) + ")"
	p.until("there is "+name, at)
	var box struct{ X, Y float64 }
	p.untilSo(name+" is clicked on", func() bool {
		was := box
		box = eval[struct{ X, Y float64 }](p, `(async () => {
			const e = `+at+`
			if (!e) return {X: 0, Y: 0}
			e.scrollIntoView({block: "center"})
			await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
			window.clicked = false
			e.addEventListener("click", () => window.clicked = true, {capture: true, once: true})
			const r = e.getBoundingClientRect()
			return {X: r.x + r.width / 2, Y: r.y + r.height / 2}
		})()`)
		if box != was || box.X == 0 {
			return false
		}
		press(box.X, box.Y)
		return eval[bool](p, "window.clicked !== false") // or the click has made a new page
	})
}

// keys types keys, as a person does who uses no pointer.
func (p *tab) keys(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// reaches goes by Tab to the control of that name, from where a person is who comes to the view, and presses Enter.
func (p *tab) reaches(name string, within ...string) {
	p.t.Helper()
	at := find + "(" + quoted(name) + ", " + quoted(strings.Join(within, "")) + ")"
	p.until("there is "+name, at)
	eval[bool](p, `(document.querySelector("dialog[open]") || document.getElementById("main").focus(), true)`)
	for n := 0; !eval[bool](p, at+" === document.activeElement"); n++ {
		if n == 60 {
			p.fatalf("%s is not reached by Tab", name)
		}
		p.keys(kb.Tab)
	}
	p.keys(kb.Enter)
}

// submits sends the box that has the focus, by Ctrl+Enter.
func (p *tab) submits() {
	p.t.Helper()
	p.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
}

// types puts a text into the field of that name, by the keyboard.
func (p *tab) types(name, text string, within ...string) {
	p.t.Helper()
	at := find + "(" + quoted(name) + ", " + quoted(strings.Join(within, "")) + ")"
	p.until("there is the field "+name, at)
	eval[bool](p, "("+at+".focus(), true)")
	devtools(p, input.InsertText, input.InsertTextParams{Text: text})
}

// size sets the size of the window, and the theme of the system: light or dark.
func (p *tab) size(width, height int64, theme string) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
	eval[string](p, "document.documentElement.dataset.theme = "+quoted(theme))
	p.drawn()
}

// drawn waits until what has come in is drawn: for two frames.
func (p *tab) drawn() {
	p.t.Helper()
	p.until("it is drawn", "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
}

// shots is the folder that screenshots are written to, for people to look at; "" = nowhere.
var shots = os.Getenv("PAGE_SHOTS")

func (p *tab) shot(name string) {
	if shots == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Logf("no screenshot: %v", err)
		return
	}
	file := strings.NewReplacer("/", "-", " ", "-").Replace(p.t.Name()+"-"+name) + ".png"
	if err := os.WriteFile(filepath.Join(shots, file), png, 0o600); err != nil {
		p.t.Log(err)
	}
}
