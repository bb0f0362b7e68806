// Package web serves the page for people, which a browser gets at / of the API's address. The page is a client of /v1
// and its streams only.
//
// The files are embedded from dist. They are built of src: TypeScript, bundled by esbuild; a test builds them again and
// compares, and make page writes them. Nothing is loaded from elsewhere.
//
// All texts of models, tools and mail become text nodes. The page's content security policy allows no inline script, no
// style attribute, no image and no connection elsewhere, and its Trusted Types make every conversion of text into
// markup an error.
//
// Package access authorizes requests before they come here.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"time"
)

//go:embed dist
var dist embed.FS

// policy lets the page load its own script, style and icon, and call its own API.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Assets is the path of the files that the page loads.
const Assets = "/assets/"

// types are the media types of the files in dist.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
}

// New returns the handler of / and of the files below [Assets]. It passes other paths to nothing.
func New(nothing http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", nothing)
	mux.HandleFunc("GET "+Assets+"icon.svg", icon)
	files, err := fs.ReadDir(dist, "dist")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, f := range files {
		data, err := dist.ReadFile("dist/" + f.Name())
		if err != nil {
			panic(err)
		}
		pattern := "GET " + Assets + f.Name()
		if f.Name() == "index.html" {
			pattern = "GET /{$}"
		}
		mux.Handle(pattern, file(f.Name(), data))
	}
	return mux
}

// file serves one file. A browser caches it, and revalidates it.
func file(name string, data []byte) http.Handler {
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head(w.Header(), types[path.Ext(name)])
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
	})
}

func head(h http.Header, contentType string) {
	h.Set("Content-Type", contentType)
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "private, no-cache")
}

// icon serves the icon of the page's tab; ?n= is the number on it, of requests that wait for the person.
func icon(w http.ResponseWriter, r *http.Request) {
	head(w.Header(), "image/svg+xml")
	number := ""
	if n, err := strconv.Atoi(r.URL.Query().Get("n")); err == nil && n > 0 {
		if number = strconv.Itoa(n); n > 9 {
			number = "9+"
		}
	}
	fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1a5cb8"/>`+
		`<g fill="#fff"><circle cx="16" cy="9" r="4"/><circle cx="8" cy="22" r="4"/><circle cx="24" cy="22" r="4"/></g>`+
		`<path d="M16 9 8 22h16z" fill="none" stroke="#fff" stroke-width="2"/>`)
	if number != "" {
		fmt.Fprintf(w, `<circle cx="22" cy="10" r="10" fill="#d9480f"/><text x="22" y="15" font-family="sans-serif" font-size="14" font-weight="700" fill="#fff" text-anchor="middle">%s</text>`, number)
	}
	fmt.Fprint(w, `</svg>`)
}
