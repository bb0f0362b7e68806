package telemetry

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
)

// NewLogger returns a logger that writes one record per line to w.
//
// The level is debug, info, warn or error, in any case; the format is text or
// json. Anything else is an error that names what is allowed. The logger is safe
// for concurrent use, with any w.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var min slog.Level
	if err := min.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: use debug, info, warn or error", level)
	}
	opt := &slog.HandlerOptions{Level: min}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opt)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opt)), nil
	}
	return nil, fmt.Errorf("log format %q: use text or json", format)
}

// OrDiscard returns log, or a logger that discards everything if log is nil.
func OrDiscard(log *slog.Logger) *slog.Logger {
	return cmp.Or(log, slog.New(slog.DiscardHandler))
}
