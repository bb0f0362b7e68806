package tokens_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/model/tokens"
)

// samples are texts of the kinds that conversations are made of.
func samples(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"english.txt", "code.txt", "chinese.txt", "board.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(data)
	}
	random := make([]byte, 6000)
	rand.New(rand.NewSource(1)).Read(random)
	all["base64"] = base64.StdEncoding.EncodeToString(random)
	all["digests"] = strings.Join(strings.SplitAfter(hex.EncodeToString(random), "00"), "  file.go\n")
	return all
}

func TestEstimate(t *testing.T) {
	for name, text := range samples(t) {
		t.Run(name, func(t *testing.T) {
			count, estimate := tokens.Count(text), tokens.Estimate(text)
			ratio := float64(estimate) / float64(count)
			t.Logf("%d bytes, %d tokens, estimated %d: %.2f", len(text), count, estimate, ratio)
			if ratio < 0.9 || ratio > 1.35 {
				t.Errorf("estimated %d, counted %d: %.2f", estimate, count, ratio)
			}
		})
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]int{"": 0, "hello world": 2, "<|endoftext|>": 7, "界": 1} {
		if got := tokens.Count(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := tokens.Estimate(""); got != 0 {
		t.Errorf("nothing is estimated at %d", got)
	}
}

// Nothing that a tool may put out makes an estimate fail or absurd.
func FuzzEstimate(f *testing.F) {
	for _, text := range []string{"", "\xff\xfe", "a\x00b", "HTTPServer2x", strings.Repeat("aB1", 200), "\r\n\r\n", " \t ", "🚀👩‍💻", "…—"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := tokens.Estimate(text); got < 0 || got > 3*len(text) {
			t.Errorf("%q is estimated at %d", text, got)
		}
	})
}

func TestGauge(t *testing.T) {
	var g tokens.Calibration
	told := func(prompt, sent, want int) {
		t.Helper()
		g.Counted(prompt, sent)
		if got := g.Tokens(1000); got != want {
			t.Errorf("told %d for %d: 1000 are worth %d, want %d", prompt, sent, got, want)
		}
	}
	if got := g.Tokens(1000); got != 1000 {
		t.Errorf("a new gauge makes %d of 1000", got)
	}
	told(0, 10_000, 1000)     // no report
	told(900, 100, 1000)      // a short request
	told(4096, 10_000, 1000)  // a prompt that was cut
	told(8000, 10_000, 800)   // the first report is taken as it is
	told(12_000, 10_000, 900) // later ones by a quarter
	told(90_000, 10_000, 1175)
	for range 50 {
		g.Counted(90_000, 10_000)
	}
	told(90_000, 10_000, 2000) // never beyond
	for range 50 {
		g.Counted(300, 1000)
	}
	told(300, 1000, 500)
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		estimated, reported int
		want                bool
	}{
		{8000, 4096, true}, {100_000, 4096, true}, {8000, 4799, true},
		{8000, 4800, false}, {8000, 8000, false}, {8000, 12_000, false},
		{8000, 0, false}, {1900, 300, false},
	} {
		if got := tokens.Cut(tt.estimated, tt.reported); got != tt.want {
			t.Errorf("Cut(%d, %d) = %v", tt.estimated, tt.reported, got)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	tokens.Count("") // loads
	benchmark(b, tokens.Count)
}

func BenchmarkEstimate(b *testing.B) { benchmark(b, tokens.Estimate) }

func benchmark(b *testing.B, count func(string) int) {
	for name, text := range samples(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				count(text)
			}
		})
	}
	b.Run("a megabyte without blanks", func(b *testing.B) {
		text := strings.Repeat("xy1", 350_000)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			count(text)
		}
	})
}

func ExampleCalibration() {
	var g tokens.Calibration
	sent := 8000 // what we estimated a request at
	fmt.Println(g.Tokens(sent))
	g.Counted(6800, sent) // its endpoint says in the answer's usage what it was
	fmt.Println(g.Tokens(sent))
	// Output:
	// 8000
	// 6800
}
