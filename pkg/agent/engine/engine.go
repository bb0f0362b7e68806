package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/telemetry"
	"agentteam/pkg/tool"
)

// Model answers a conversation; *router.Router is one. Its errors are *model.Refusal, or ctx's.
type Model interface {
	Complete(ctx context.Context, r model.Request, onDelta func(string)) (model.Reply, error)
	Limits(alias string) model.Limits
	// Meant returns the alias that a name refers to, and the endpoint's name of its model.
	Meant(name string) (alias, model string)
}

// Journal records the conversation; *journal.Journal is one. Append returns once the record is
// stored. Enqueue returns before that and keeps the order; Flush waits for all of them.
type Journal interface {
	Append(ctx context.Context, r journal.Record) (journal.Record, error)
	Enqueue(ctx context.Context, r journal.Record) journal.Record
	Flush() error
}

// Tools runs the calls of the model; *tool.Set is one.
type Tools interface {
	Specs() []tool.Spec
	// Traits returns those of the tool with this name; the zero Traits if there is none.
	Traits(name string) tool.Traits
	TraitsOf(c tool.Call) tool.Traits // also for a name that several tools share
	Run(ctx context.Context, c tool.Call) tool.Result
}

// Store keeps texts that are too long for a conversation, and images; *blob.Texts is one.
type Store interface {
	// Put stores a text and returns the reference by which read_file finds it.
	Put(ctx context.Context, text string) (ref string, err error)
	// Get returns a text that Put has stored.
	Get(ctx context.Context, ref string) (text string, err error)
}

// Step is a kind of action that the engine is about to begin.
type Step int

// The steps for which an engine asks its owner's permission.
const (
	Read  Step = iota // run a tool that changes nothing that counts
	Write             // run a tool that writes
	Ask               // ask the model for a turn
)

// Owner decides when the engine's steps may run, and receives their effects. Its methods are called
// from the engine's goroutine.
type Owner interface {
	// Leave returns once the step may begin. An error ends the turn.
	Leave(ctx context.Context, s Step) error
	// Within returns the context within which a step may run; release must be called.
	Within(ctx context.Context) (within context.Context, release context.CancelFunc)
	// Returned takes in the effects of a call, whose result r is about to be recorded; it may
	// complete r.
	Returned(e tool.Effects, r *journal.ToolResult)
}

// Watcher is notified of the engine's progress. Its methods do not block.
type Watcher interface {
	// Changed is called when the conversation has grown or become shorter, and when a tool begins,
	// with its name, or ends.
	Changed(tool string)
	// Progress is called when the model or a tool has made progress; from any goroutine.
	Progress()
	// Retry is called before a call of the model is tried again.
	Retry(r model.Retry)
}

// Options are an engine's parts. All are required unless a comment says otherwise.
type Options struct {
	Name         string // of the agent, for errors and probes
	System       string // the system message
	Alias        string // of the model; "": the default one
	Effort       string // of its thinking; "": the alias's default
	Model        Model  // nil: none is configured, and each question is refused
	Tools        Tools
	Journal      Journal
	Conversation *Conversation           // as the journal has it; the engine takes it over
	Memory       Memory                  // of which Conversation is a part; default: Conversation alone, which keeps the first text of [Engine.Run]
	Owner        Owner                   // default: each step may begin immediately
	Watcher      Watcher                 // default: none is notified
	Stream       func(string) TextStream // returns the stream for the text of the turn that is recorded under an id, or nil; default: nil
	Store        Store                   // default: long texts are cut
	// Changes returns the files that the work has changed, a line each, which follow a summary;
	// default: none.
	Changes func(ctx context.Context) string
	Logger  *slog.Logger // default: discard
}

// Engine runs one conversation. Only Interrupt is safe for concurrent use; call all others from one
// goroutine.
type Engine struct {
	// Trouble is why the model gives no answer, while the call is retried; "" once it has answered.
	Trouble string

	o           Options
	conv        *Conversation
	calibration calibration
	interrupts  interrupts
	asked       bool // a requested compaction must wait for the end of the turn
	log         *slog.Logger
}

// New returns an engine that continues a conversation.
func New(o Options) *Engine {
	o.Logger = telemetry.OrDiscard(o.Logger)
	o.Conversation = cmp.Or(o.Conversation, NewConversation())
	o.Memory = cmp.Or[Memory](o.Memory, &alone{Conversation: o.Conversation})
	o.Owner = cmp.Or[Owner](o.Owner, noOwner{})
	o.Watcher = cmp.Or[Watcher](o.Watcher, noOwner{})
	if o.Changes == nil {
		o.Changes = func(context.Context) string { return "" }
	}
	if o.Stream == nil {
		o.Stream = func(string) TextStream { return nil }
	}
	return &Engine{o: o, conv: o.Conversation, calibration: newCalibration(o), log: o.Logger}
}

// Instruct replaces the system message and the tools, from the next request on.
func (e *Engine) Instruct(system string, t Tools) {
	e.o.Tools = t
	e.calibration.begin(system, t)
}

// errCircles is returned by [Engine.Run] if the model repeats the same calls.
var errCircles = errors.New("the model makes the same calls again and again, with the same results")

// Run records a text as input, and asks the model and runs its tools until it answers with text
// only, which Run returns. Calls that an earlier run left open get an error as their result. A
// refused conversation is retried with less of it. Errors: *model.Refusal; [ErrInterrupted] while
// an interrupt is not over; ctx's; those of the journal and of the owner.
func (e *Engine) Run(ctx context.Context, text string) (string, error) {
	if err := e.AnswerOpen(ctx, unknownResult); err != nil {
		return "", err
	}
	if err := e.Record(ctx, journal.Record{Kind: journal.Note, Text: text}); err != nil {
		return "", err
	}
	for !e.conv.Circles() {
		e.NewTurn()
		if err := e.MakeRoom(ctx); err != nil {
			return "", err
		}
		reply, err := e.Turn(ctx, false)
		var refusal *model.Refusal
		switch {
		case errors.Is(err, ErrInterrupted):
			if e.NewTurn(); len(e.Interrupts()) > 0 {
				return "", err
			}
		case errors.As(err, &refusal):
			to := e.NextRung(refusal.Reason)
			if to == Whole || refusal.Advice != model.Compact && refusal.Advice != model.GiveUp {
				return "", err
			}
			if err := e.Shorten(ctx, refusal, to); err != nil {
				return "", err
			}
		case err != nil:
			return "", err
		case len(reply.Message.ToolCalls) == 0:
			return reply.Message.Content, e.o.Journal.Flush()
		default:
			if _, _, err := e.Call(ctx, reply.Message.ToolCalls); err != nil {
				return "", err
			}
		}
	}
	return "", errCircles
}

// Record appends a record to the journal and then to the conversation.
func (e *Engine) Record(ctx context.Context, r journal.Record) error {
	r, err := e.o.Journal.Append(ctx, r)
	if err != nil {
		return err
	}
	return e.o.Memory.Add(r)
}

// Enqueue is Record that does not wait until the record is stored. Before the owner does something
// visible to others, it must flush the journal: a successor knows only stored records.
func (e *Engine) Enqueue(ctx context.Context, r journal.Record) error {
	return e.o.Memory.Add(e.o.Journal.Enqueue(ctx, r))
}

// noOwner is the owner and the watcher of a standalone engine.
type noOwner struct{}

func (noOwner) Leave(context.Context, Step) error { return nil }

func (noOwner) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return ctx, func() {}
}

func (noOwner) Returned(tool.Effects, *journal.ToolResult) {}

func (noOwner) Changed(string) {}

func (noOwner) Progress() {}

func (noOwner) Retry(model.Retry) {}

// JSON returns v encoded by encoding/json, for a record or an event; nil if it cannot be encoded.
func JSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}
