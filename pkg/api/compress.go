package api

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// compressed returns next with gzip for clients that accept it: JSON, and the files of the page. Streams compress
// themselves (package stream), since each of their sends has to arrive.
func compressed(next http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.EnableZstd(false),
		gzhttp.ContentTypes([]string{"application/json", "text/html", "text/javascript", "text/css"}))
	if err != nil {
		return nil, err
	}
	short := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/event-stream") || r.URL.Query().Has("follow") {
			next.ServeHTTP(w, r)
			return
		}
		short.ServeHTTP(w, r)
	}), nil
}
