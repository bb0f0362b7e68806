package web_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"

	"agentteam/pkg/teamtest/testenv"
)

var update = flag.Bool("update", false, "write dist")

// built makes what dist holds, by its names.
func built(t *testing.T) map[string][]byte {
	t.Helper()
	files := bundle(t, "src/main.tsx", api.BuildOptions{MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Platform: api.PlatformBrowser})
	style, err := os.ReadFile("src/style.css")
	if err != nil {
		t.Fatal(err)
	}
	css := api.Transform(string(style), api.TransformOptions{Loader: api.LoaderCSS, MinifyWhitespace: true, MinifySyntax: true, Target: target, LogLevel: api.LogLevelInfo})
	if len(css.Errors) > 0 {
		t.Fatal(css.Errors)
	}
	page, err := os.ReadFile("src/index.html")
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"page.js": files, "page.css": css.Code, "index.html": page}
}

// target is the oldest language that browsers have to know: light-dark() is of 2024.
const target = api.ES2022

// bundle makes one module of a source file and all that it imports.
func bundle(t *testing.T, entry string, o api.BuildOptions) []byte {
	t.Helper()
	o.EntryPoints, o.Bundle, o.Format, o.Target, o.Charset = []string{entry}, true, api.FormatESModule, target, api.CharsetUTF8
	o.JSX, o.JSXFactory, o.JSXFragment, o.LegalComments = api.JSXTransform, "h", "Fragment", api.LegalCommentsNone
	o.TsconfigRaw = "{}"
	r := api.Build(o)
	for _, m := range slices.Concat(r.Errors, r.Warnings) {
		t.Errorf("%s: %+v: %s", entry, m.Location, m.Text)
	}
	if t.Failed() {
		t.FailNow()
	}
	return r.OutputFiles[0].Contents
}

// TestDist: what is embedded is what src makes, byte by byte.
func TestDist(t *testing.T) {
	files := built(t)
	for name, want := range files {
		path := filepath.Join("dist", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what src makes (%v): run make page", path, err)
		}
	}
	there, err := os.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		if files[f.Name()] == nil {
			t.Errorf("dist/%s is made of nothing in src", f.Name())
		}
	}
}

// TestNames: each name that the page uses is declared in it, or is one of the browser's. Nothing else checks that:
// esbuild takes the types away without reading them.
func TestNames(t *testing.T) {
	browser := strings.Fields(`
		AbortController Array Boolean DOMException Date Error Event Infinity Intl JSON Map Math MessageChannel Object
		Promise RegExp Set String TextDecoder TextEncoder URL URLSearchParams Uint8Array addEventListener cancelAnimationFrame
		clearInterval clearTimeout console crypto decodeURIComponent dispatchEvent document encodeURIComponent fetch history
		innerHeight localStorage location navigator parseInt performance removeEventListener requestAnimationFrame scrollTo
		setInterval setTimeout window`)
	ast, err := js.Parse(parse.NewInputBytes(bundle(t, "src/main.tsx", api.BuildOptions{Platform: api.PlatformBrowser})), js.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range ast.BlockStmt.Scope.Undeclared {
		if name := string(v.Name()); !slices.Contains(browser, name) {
			t.Errorf("%s is declared nowhere", name)
		}
	}
}

// TestWeight: the page is read over slow lines, too. The goal was 40 KiB; two more are what it takes
// that a record of the future, a late answer or a held key does no harm.
func TestWeight(t *testing.T) {
	const most = 43 << 10
	total := 0
	for name, data := range built(t) {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%6d bytes, %6d gzipped: %s", len(data), b.Len(), name)
		total += b.Len()
	}
	if t.Logf("%d bytes gzipped", total); total > most {
		t.Errorf("the page weighs %d bytes gzipped, the limit is %d", total, most)
	}
}

// TestTypes has tsc check the types of the page, which esbuild only leaves out. A fault that is put in is found.
func TestTypes(t *testing.T) {
	tsc := testenv.Program(t, "tsc")
	check := func(dir string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, tsc, "-p", dir).CombinedOutput()
		return string(out), err
	}
	if out, err := check("."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	dir := t.TempDir()
	config, err := os.ReadFile("tsconfig.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"tsconfig.json": string(config), "src/dom.ts": "export const h = (..._: any[]) => 1", "src/globals.d.ts": "",
		"src/a.ts": "import { h } from './dom'\nexport const n: string = h() + 1"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := check(dir); err == nil || !strings.Contains(out, "a.ts(2,") {
		t.Errorf("a number that is taken for a text is not found: %v\n%s", err, out)
	}
}

// TestLogic runs the tests of the page's logic, in src/test, in node: the fold of the feed against
// the cases of feed/state among them.
func TestLogic(t *testing.T) {
	node := testenv.Program(t, "node")
	cases, err := filepath.Abs("../../store/feed/state/testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Glob("src/test/*.test.ts")
	if err != nil || len(tests) == 0 {
		t.Fatalf("there are no tests: %v", err)
	}
	dir := t.TempDir()
	args := []string{"--test"}
	for _, name := range tests {
		file := filepath.Join(dir, filepath.Base(name)+".mjs")
		if err := os.WriteFile(file, bundle(t, name, api.BuildOptions{Platform: api.PlatformNode}), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Env = append(os.Environ(), "CASES="+cases)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
