package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/tool"
)

// album keeps images.
type album map[string]string

func (a album) Put(_ context.Context, text string) (string, error) {
	if a == nil {
		return "", errors.New("away")
	}
	ref := fmt.Sprint("stored:", len(a))
	a[ref] = text
	return ref, nil
}

func (a album) Get(_ context.Context, ref string) (string, error) { return a[ref], nil }

// camera is a rig whose tools named photo return an image.
func camera(t *testing.T, store Store, answers ...any) *rig {
	r := newRig(t, answers...)
	r.engine = New(Options{Name: "a", System: "You are a.", Model: r, Tools: tools{r}, Journal: r, Owner: r, Store: store})
	r.tool = func(_ context.Context, name string) tool.Result {
		if name != "photo" {
			return tool.Result{Content: "ok"}
		}
		return tool.Result{Content: "[image]", Parts: []tool.Part{{MediaType: "image/png", Data: []byte("png")}, {Name: "x"}}}
	}
	return r
}

// The model gets an image behind all results of its turn, and the journal its reference only.
func TestImages(t *testing.T) {
	r := camera(t, album{}, "!photo,look", "done")
	if _, err := r.engine.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(r.told(), "\n", "; "); !strings.HasSuffix(got, "tool: [image]; tool: ok; user: What photo has shown:; ") {
		t.Errorf("the model was told %s", got)
	}
	asked := r.asked[len(r.asked)-1]
	last := asked.Messages[len(asked.Messages)-1]
	if len(last.Parts) != 1 || last.Parts[0].Image == nil {
		t.Fatalf("the last message is %+v", last)
	}
	if data, err := asked.Image(*last.Parts[0].Image); string(data) != "png" || err != nil {
		t.Errorf("the image: %q, %v", data, err)
	}
	i := slices.IndexFunc(r.records, func(rec journal.Record) bool { return rec.Kind == journal.Result })
	if got := r.records[i].Result.Images; len(got) != 1 || got[0] != (journal.Image{MediaType: "image/png", Ref: "stored:0", Size: 3}) {
		t.Errorf("the journal has %+v", got)
	}
}

// One that cannot be kept is not shown, and the model is told so.
func TestImageThatIsNotKept(t *testing.T) {
	for _, store := range []Store{nil, album(nil)} {
		r := camera(t, store, "!photo", "done")
		if _, err := r.engine.Run(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if got := r.told(); !strings.HasSuffix(got, "tool: [image]\n[an image could not be kept, so you cannot see it]\n") {
			t.Errorf("the model was told %s", got)
		}
	}
}

// An image that an endpoint refuses goes with its turn; else the conversation would be refused
// for ever.
func TestRefusedImage(t *testing.T) {
	r := camera(t, album{}, "!photo", refusal(model.GiveUp, model.InvalidRequest), "done")
	if _, err := r.engine.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(r.asked[len(r.asked)-1].Messages, pictured) {
		t.Errorf("it is asked with the image again: %s", r.told())
	}
}

// A conversation sends so many images only: the oldest are left out, also when room is needed.
func TestImagesAreBounded(t *testing.T) {
	r := camera(t, album{})
	c := r.engine.conv
	for i := range maxImages + 5 {
		id := fmt.Sprint("call", i)
		c.turn(model.Reply{Message: model.Message{Role: "assistant", ToolCalls: []model.ToolCall{{ID: id, Name: "photo"}}}})
		c.result(journal.ToolResult{CallID: id, Name: "photo", Images: []journal.Image{{MediaType: "image/png", Ref: id, Size: 1000}}})
	}
	count := func(ms []*model.Message) (n int) {
		for _, m := range ms {
			if pictured(m) {
				n++
			}
		}
		return n
	}
	if got := count(c.Messages); got != maxImages || !pictured(c.Messages[len(c.Messages)-1]) {
		t.Errorf("%d images", got)
	}
	c.turn(model.Reply{Message: model.Message{Role: "assistant", ToolCalls: []model.ToolCall{{ID: "big", Name: "photo"}}}})
	c.result(journal.ToolResult{CallID: "big", Name: "photo", Images: []journal.Image{{Ref: "big", Size: maxImageBytes - 2000}}})
	if got := count(c.Messages); got != 3 {
		t.Errorf("%d images beside one of nearly all bytes", got)
	}
	marked := c.Marked(tools{r}, 4000)
	if got := count(marked.Messages); got == 0 || got > 2 || count(c.Messages) != 3 {
		t.Errorf("%d images are left where room is needed", got)
	}
}
