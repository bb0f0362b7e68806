package pkg

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The table of metrics is made from the calls that register them.
func TestMetricsTable(t *testing.T) {
	rows := map[string]string{}
	for _, f := range goFiles(t) {
		if f.test || !strings.HasPrefix(f.dir, "pkg/") || f.name == "pkg/telemetry/register.go" {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			m, ok := metricIn(n)
			switch {
			case ok && (m.name == "" || m.help == "" || slices.Contains(m.labels, "")):
				t.Errorf("%s: the name, the help and the labels of a metric are literals", fset.Position(n.Pos()))
			case ok:
				name := m.name
				if len(m.labels) > 0 {
					name += "{" + strings.Join(m.labels, ",") + "}"
				}
				name = "`" + name + "`"
				if m.histogram {
					name += " histogram"
				}
				rows[m.name] = fmt.Sprintf("| %s | %s |\n", name, strings.TrimSuffix(m.help, "."))
			}
			return true
		})
	}
	if len(rows) < 10 {
		t.Fatalf("%d metrics were found", len(rows))
	}
	table := "| name | meaning |\n|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		table += rows[name]
	}
	holdsTable(t, "../docs/operations.md", table)
}

// metric is a metric as the source registers it; a part that is no literal is "".
type metric struct {
	name, help string
	histogram  bool
	labels     []string
}

// metricIn returns the metric that n makes: by one of telemetry.Counters and its kin, or from a prometheus.XOpts.
func metricIn(n ast.Node) (metric, bool) {
	switch n := n.(type) {
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		first := map[string]int{"Counters": 3, "Gauges": 3, "Histograms": 4} // the first label among the arguments
		if !ok || fmt.Sprint(f.X) != "telemetry" || first[f.Sel.Name] == 0 {
			return metric{}, false
		}
		m := metric{name: literal(n.Args[1]), histogram: f.Sel.Name == "Histograms", help: literal(n.Args[2])}
		for _, label := range n.Args[first[f.Sel.Name]:] {
			m.labels = append(m.labels, literal(label))
		}
		return m, true
	case *ast.CompositeLit:
		opts, ok := n.Type.(*ast.SelectorExpr)
		if !ok || fmt.Sprint(opts.X) != "prometheus" || !strings.HasSuffix(opts.Sel.Name, "Opts") {
			return metric{}, false
		}
		m := metric{histogram: opts.Sel.Name == "HistogramOpts"}
		for key, value := range pairs(n) {
			switch key {
			case "Name":
				m.name = literal(value)
			case "Help":
				m.help = literal(value)
			case "ConstLabels":
				for label := range pairs(value.(*ast.CompositeLit)) {
					m.labels = append(m.labels, strings.Trim(label, `"`))
				}
			}
		}
		return m, true
	}
	return metric{}, false
}

// pairs returns the keys and values of a composite literal, in order.
func pairs(n *ast.CompositeLit) func(yield func(string, ast.Expr) bool) {
	return func(yield func(string, ast.Expr) bool) {
		for _, e := range n.Elts {
			pair, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key := fmt.Sprint(pair.Key)
			if lit, ok := pair.Key.(*ast.BasicLit); ok {
				key = lit.Value
			}
			if !yield(key, pair.Value) {
				return
			}
		}
	}
}

func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}
