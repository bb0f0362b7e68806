package broker

import (
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// silences are the errors by which the client library and contexts report that no answer came.
var silences = []error{context.DeadlineExceeded, context.Canceled, nats.ErrTimeout, nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting,
	nats.ErrConnectionClosed, nats.ErrDisconnected, nats.ErrNoResponders, jetstream.ErrNoStreamResponse}

// Unheard returns err, or, if it means that no answer came, an error in words for people: the client library describes its
// own internals. The new error wraps err, and keeps the server's own words.
func Unheard(err error) error {
	if !slices.ContainsFunc(silences, func(silence error) bool { return errors.Is(err, silence) }) {
		return err
	}
	text := "NATS did not answer in time"
	if api, said := errors.AsType[*jetstream.APIError](err); said { // to an earlier try
		text += ": " + api.Description
	}
	return unheard{err, text}
}

type unheard struct {
	error
	text string
}

func (u unheard) Error() string { return u.text }
func (u unheard) Unwrap() error { return u.error }
