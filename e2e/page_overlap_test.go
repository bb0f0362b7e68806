package e2e

import (
	"strings"
	"testing"
)

// overlaps is JavaScript that goes down a page and finds what a person cannot read or press there: a text or a control
// that leaves the window, that another element covers or that is cut off without an ellipsis, and texts that lie
// on one another.
const overlaps = `(async () => {
  const faults = new Set()
  // What lies over the page and lets what scrolls below it come out again.
  const over = ".top, .tail, .notes, .views a[aria-current]"
  const named = (e) => "<" + e.tagName.toLowerCase() + " class=" + (e.getAttribute("class") || "") + "> " + JSON.stringify((e.getAttribute("aria-label") || e.textContent).trim().slice(0, 50))
  const fault = (e, what) => faults.size < 20 && faults.add(named(e) + " " + what)

  let frames // of the elements that cut off what leaves them: their boxes, as the page is scrolled now
  const frame = (e) => {
    if (frames.has(e)) return frames.get(e)
    const s = getComputedStyle(e)
    const cuts = s.display !== "inline" && (s.overflowX !== "visible" || /paint|strict|content/.test(s.contain))
    const c = e.getBoundingClientRect()
    const got = { none: s.clipPath !== "none", cuts, c, // a drawing that pans shows the rest as a list does that scrolls
      scrolls: /auto|scroll/.test(s.overflowX + s.overflowY) || e.matches(".graph svg, .lanes svg[viewBox]"),
      dots: s.textOverflow === "ellipsis" || s.webkitLineClamp !== "none" }
    frames.set(e, got)
    return got
  }
  // seen is the part of a box that no element around it cuts off, if there is any.
  const seen = (e, box) => {
    const v = { l: box.left, t: box.top, r: box.right, b: box.bottom }
    let out = false // of what shows the rest by scrolling, or stands for it by an ellipsis
    for (let a = e; a && a !== document.body; a = a.parentElement) {
      const f = frame(a)
      if (f.none) return
      if (!f.cuts) continue
      if (f.scrolls || f.dots) out = true
      else if (!out && (v.r > f.c.right + 2 || v.l < f.c.left - 2 || v.b > f.c.bottom + 4 || v.t < f.c.top - 4)) fault(e, "is cut off by " + named(a))
      v.l = Math.max(v.l, f.c.left); v.t = Math.max(v.t, f.c.top); v.r = Math.min(v.r, f.c.right); v.b = Math.min(v.b, f.c.bottom)
    }
    return v.r - v.l > 3 && v.b - v.t > 3 ? v : undefined
  }
  // lies judges one box, and returns what is seen of it.
  const lies = (e, box, around) => {
    const v = seen(e, box)
    if (!v) return
    if (v.l < -1 || v.r > innerWidth + 1) fault(e, "leaves the window")
    const x = (v.l + v.r) / 2, y = (v.t + v.b) / 2
    if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) return
    const hit = document.elementFromPoint(x, y)
    if (e.contains(hit) || around && hit?.contains(e)) return v
    if (!hit?.closest(over)) fault(e, "is covered by " + (hit ? named(hit) : "nothing"))
  }
  const shown = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true })

  const judge = () => {
    frames = new Map()
    const within = document.querySelector("dialog[open]") || document.body
    for (const e of within.querySelectorAll("button, a[href], input, select, textarea, summary, [role=button]")) {
      if (!shown(e)) continue
      const largest = [...e.getClientRects()].sort((a, b) => b.width * b.height - a.width * a.height)[0]
      if (largest) lies(e, largest, false)
    }
    const texts = []
    const walk = document.createTreeWalker(within, NodeFilter.SHOW_TEXT)
    const range = document.createRange()
    for (let n; (n = walk.nextNode()); ) {
      if (!n.data.trim() || n.parentElement.matches("script, style, option, title") || !shown(n.parentElement)) continue
      range.selectNodeContents(n)
      for (const box of range.getClientRects()) {
        const v = box.width > 1 && lies(n.parentElement, box, true)
        if (v && !n.parentElement.closest(over)) texts.push({ n, e: n.parentElement, ...v })
      }
    }
    texts.sort((a, b) => a.t - b.t)
    for (let i = 0; i < texts.length; i++) {
      const a = texts[i]
      for (let j = i + 1; j < texts.length && texts[j].t < a.b; j++) {
        const b = texts[j]
        const deep = Math.min(a.b, b.b) - b.t
        if (a.n !== b.n && Math.min(a.r, b.r) - Math.max(a.l, b.l) > 2 && deep > 0.4 * Math.min(a.b - a.t, b.b - b.t)) fault(a.e, "lies on " + named(b.e))
      }
    }
  }
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
  const step = Math.max(200, innerHeight - 160)
  for (let n = 0; n < 8; n++) {
    scrollTo(0, n * step)
    await drawn()
    judge()
    if (scrollY + innerHeight >= document.documentElement.scrollHeight - 1) break
  }
  scrollTo(0, 0)
  return [...faults]
})()`

// broken are styles that spoil a page, and what the rules say of each.
var broken = map[string]string{
	".column .last { margin-top: -24px; position: relative; z-index: 1 }":           "is covered by",
	".column .card { pointer-events: none } .column .head { margin-bottom: -18px }": "lies on",
	"main::after { content: ''; position: fixed; inset: 0 }":                        "is covered by",
	".column h2 { width: 4000px; text-align: end } .columns { overflow: visible }":  "leaves the window",
	".chip { max-width: 3ch; overflow: hidden; white-space: nowrap }":               "is cut off by",
}

// spoils has the rules find what is wrong with the page that is shown, once it is.
func spoils(t *testing.T, p *tab) {
	t.Helper()
	for style, want := range broken {
		eval[bool](p, `(async () => {
			const sheet = new CSSStyleSheet()
			sheet.replaceSync(`+quoted(style)+`)
			document.adoptedStyleSheets = [sheet]
			return true
		})()`)
		if faults := eval[[]string](p, overlaps); !strings.Contains(strings.Join(faults, "\n"), want) {
			t.Errorf("with %s the rules find %q, and nothing that %s", style, faults, want)
		}
	}
	eval[bool](p, "(document.adoptedStyleSheets = [], true)")
}
