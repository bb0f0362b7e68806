package web_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// colour is one of sRGB; each channel is from 0 to 1.
type colour [3]float64

func parseColour(t *testing.T, s string) (c colour) {
	t.Helper()
	s = strings.TrimPrefix(s, "#")
	if len(s) == 3 {
		s = string([]byte{s[0], s[0], s[1], s[1], s[2], s[2]})
	}
	n, err := strconv.ParseUint(s, 16, 24)
	if err != nil || len(s) != 6 {
		t.Fatalf("%q is no colour", s)
	}
	for i := range c {
		c[i] = float64(n>>(16-8*i)&0xff) / 255
	}
	return c
}

// mixed is so much of c in another, as color-mix of CSS does it in sRGB.
func (c colour) mixed(part float64, with colour) (m colour) {
	for i := range c {
		m[i] = part*c[i] + (1-part)*with[i]
	}
	return m
}

// luminance is the relative luminance of WCAG 2.2.
func (c colour) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// contrast is the contrast ratio of WCAG 2.2, from 1 to 21.
func contrast(a, b colour) float64 {
	x, y := a.luminance(), b.luminance()
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}

// TestContrast: in both themes texts have the contrast of WCAG AA, 4.5, and what has to be seen of
// controls and drawings has 3.
func TestContrast(t *testing.T) {
	style, err := os.ReadFile("src/style.css")
	if err != nil {
		t.Fatal(err)
	}
	pair := regexp.MustCompile(`--([a-z]+): light-dark\((#[0-9a-f]+), (#[0-9a-f]+)\)`)
	lines := regexp.MustCompile(`\.d-(more|less) \.d-line \{ background: light-dark\((#[0-9a-f]+), (#[0-9a-f]+)\)`)
	for theme, name := range []string{"light", "dark"} {
		colours := map[string]colour{}
		for _, m := range append(pair.FindAllStringSubmatch(string(style), -1), lines.FindAllStringSubmatch(string(style), -1)...) {
			if _, twice := colours[m[1]]; !twice {
				colours[m[1]] = parseColour(t, m[2+theme])
			}
		}
		holds := func(least float64, on string, what ...string) {
			t.Helper()
			for _, w := range what {
				for b := range strings.FieldsSeq(on) {
					fore, ok := colours[w]
					back, there := colours[b]
					if !ok || !there {
						t.Fatalf("there is no --%s or no --%s", w, b)
					}
					if got := contrast(fore, back); got < least {
						t.Errorf("%s: %s on %s has the contrast %.2f, at least %.1f", name, w, b, got, least)
					}
				}
			}
		}
		holds(4.5, "bg panel inset tint", "text", "dim", "accent", "ok", "warn", "bad", "cyan", "magenta")
		holds(4.5, "accent", "on")             // the main button, and what is chosen
		holds(4.5, "warn", "bg")               // how much waits
		holds(4.5, "more less", "text", "dim") // lines of a difference, and their numbers
		holds(3, "bg panel", "edge")           // fields
		holds(3, "panel inset", "ok", "accent", "ready", "warn", "bad", "edge", "magenta", "dim")
		for _, c := range []string{"ok", "accent", "ready", "warn", "bad", "bg"} { // texts in bars and nodes
			colours["in-"+c] = colours[c].mixed(0.25, colours["panel"])
			holds(4.5, "in-"+c, "text")
		}
	}
}
