package screen

import (
	"fmt"
	"html"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// picture is the recording of the screen that README.md shows.
const picture = "../../../docs/top.svg"

// TestPicture draws docs/top.svg from what the screen shows, page after page; -rewrite writes it.
func TestPicture(t *testing.T) {
	p := newPlay(96, 22)
	p.show()
	frames := []string{p.View().Content}
	for _, keys := range [][]string{{"4"}, {"enter"}, {"1"}, {"esc", "esc", "2"}, {"3"}, {"5"}} {
		if p.press(t, keys...); keys[len(keys)-1] == "5" {
			p.send(charted{session: 1, timeline: someTimeline()})
		}
		frames = append(frames, p.View().Content)
	}
	for i, f := range frames { // not every browser has letters for them
		frames[i] = strings.NewReplacer("今天?", "now?", "今天 grammar 🚀", "full grammar   ").Replace(f)
	}
	want := recording(frames, 96, 22)
	got, err := os.ReadFile(picture)
	if string(got) == want {
		return
	}
	if !rewriting() {
		t.Fatalf("%s is not what the screen shows (%v): go test ./pkg/view/screen -rewrite", picture, err)
	}
	if err := os.WriteFile(picture, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// rewriting reports whether the flag of datadriven is given.
func rewriting() bool {
	for _, arg := range os.Args {
		if strings.TrimLeft(arg, "-") == "rewrite" || strings.HasPrefix(strings.TrimLeft(arg, "-"), "rewrite=true") {
			return true
		}
	}
	return false
}

// What a cell takes, and how long a frame is seen.
const cellWidth, cellHeight, frameSeconds = 7.8, 17, 3

// recording is an SVG in which the frames follow each other for ever; the first one alone where less
// motion is wished.
func recording(frames []string, width, height int) string {
	w, h := float64(width)*cellWidth+28, height*cellHeight+48
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" aria-labelledby="t d" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13">
<title id="t">teamctl top</title><desc id="d">The screen of teamctl top: members with what each waits for, the mail to the user, a question that is answered, the board, the stream, and the timeline.</desc>
`, w, h)
	all := float64(len(frames) * frameSeconds)
	share := 100 * frameSeconds / all
	fmt.Fprintf(&b, "<style>text{fill:#c9d1d9;white-space:pre}.f{fill:#8b949e}.b{font-weight:bold}.k{fill:#0d1117}.p{opacity:0;animation:on %.0fs steps(1) infinite}.p:first-of-type{opacity:1}@keyframes on{0%%{opacity:1}%.2f%%,100%%{opacity:0}}@media (prefers-reduced-motion:reduce){.p{animation:none}}</style>\n", all, share)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%d" rx="8" fill="#0d1117"/><circle cx="18" cy="16" r="5" fill="#ff5f57"/><circle cx="36" cy="16" r="5" fill="#febc2e"/><circle cx="54" cy="16" r="5" fill="#28c840"/><text x="%.1f" y="20" text-anchor="middle" class="f" font-size="12">teamctl top</text>`+"\n", w, h, w/2)
	for i, f := range frames {
		fmt.Fprintf(&b, `<g class="p" style="animation-delay:%ds">`+"\n", i*frameSeconds)
		for y, l := range strings.Split(f, "\n") {
			drawLine(&b, l, 34+(y+1)*cellHeight-4)
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

var inkOf = map[string]string{"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff", "36": "#56d4dd"}

// drawLine draws a line of the screen, each run of one style at its own place.
func drawLine(b *strings.Builder, l string, y int) {
	x, class, fill := 0, "", ""
	for l != "" {
		if loc := styles.FindStringSubmatchIndex(l); loc != nil && loc[0] == 0 {
			class, fill = "", ""
			for code := range strings.SplitSeq(l[loc[2]:loc[3]], ";") {
				class += map[string]string{"1": " b", "2": " f", "7": " k"}[code]
				fill += inkOf[code]
			}
			l = l[loc[1]:]
			continue
		}
		run := l
		if loc := styles.FindStringIndex(l); loc != nil {
			run = l[:loc[0]]
		}
		l = l[len(run):]
		cells, at := ansi.StringWidth(run), 14+float64(x)*cellWidth
		if class == " k" {
			fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#c9d1d9"/>`, at, y-13, float64(cells)*cellWidth, cellHeight)
		}
		if strings.TrimSpace(run) != "" {
			attrs := ""
			if class != "" {
				attrs += fmt.Sprintf(` class="%s"`, strings.TrimSpace(class))
			}
			if fill != "" {
				attrs += fmt.Sprintf(` style="fill:%s"`, fill)
			}
			run = strings.TrimRight(run, " ")
			fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`, at, y, float64(ansi.StringWidth(run))*cellWidth, attrs, html.EscapeString(run))
		}
		x += cells
	}
	b.WriteString("\n")
}
