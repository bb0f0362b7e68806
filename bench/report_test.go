package main

import (
	"bytes"
	"testing"
)

func TestReport(t *testing.T) {
	var out bytes.Buffer
	err := report{Bench: "core", Figures: []figure{
		measured("claim", 12345.6, "1/s").beside(20000),
		measured("memory", 13.6171, "MiB").atMost(25),
		measured("start", 30, "ms").beside(10).atMost(2.5),
		measured("cycles", 60, "1/s").beside(100).atLeast(0.5),
	}}.write(&out)
	if err != nil {
		t.Fatal(err)
	}
	const want = `FIGURE  VALUE  UNIT  RAW    RATIO   GOAL    MET
claim   12350  1/s   20000  0.6175  -       -
memory  13.62  MiB   -      -       <= 25   yes
start   30     ms    10     3       <= 2.5  no
cycles  60     1/s   100    0.6     >= 0.5  yes
{"bench":"core","figures":[` +
		`{"name":"claim","value":12350,"unit":"1/s","raw":20000,"ratio":0.6175,"goal":null,"met":null},` +
		`{"name":"memory","value":13.62,"unit":"MiB","raw":null,"ratio":null,"goal":25,"met":true},` +
		`{"name":"start","value":30,"unit":"ms","raw":10,"ratio":3,"goal":2.5,"met":false},` +
		`{"name":"cycles","value":60,"unit":"1/s","raw":100,"ratio":0.6,"goal":0.5,"met":true}]}
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestHarmonic(t *testing.T) {
	if got := harmonic([]float64{30, 60}); got != 40 {
		t.Errorf("one half at 30 a second and one at 60 make %v a second, want 40", got)
	}
}

func TestRound(t *testing.T) {
	for in, want := range map[float64]float64{0: 0, 0.0444849: 0.04448, 9.99996: 10, 1234.5: 1235, 123456: 123500, -2.71828: -2.718} {
		if got := round(in); got != want {
			t.Errorf("round(%v) = %v, want %v", in, got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i // 100 to 1
	}
	for _, tt := range []struct {
		samples []int
		q       float64
		want    int
	}{
		{[]int{7}, 0.99, 7},
		{[]int{3, 1, 2}, 0.5, 2},
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{hundred, 0, 1},
	} {
		if got := quantile(tt.samples, tt.q); got != tt.want {
			t.Errorf("quantile(%v, %v) = %v, want %v", tt.samples, tt.q, got, tt.want)
		}
	}
}
