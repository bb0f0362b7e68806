package engine

import (
	"context"
	"fmt"
	"slices"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Bounds of the images in a conversation, since each request sends all of them. The oldest in
// excess are left out.
const (
	maxImages     = 20
	maxImageBytes = 16 << 20
)

// keepImages stores the images among a call's parts and adds references to r.
func (e *Engine) keepImages(ctx context.Context, parts []tool.Part, r *journal.ToolResult) {
	for _, p := range parts {
		if p.Data == nil {
			continue
		}
		ref, err := "", error(team.Errorf(team.Unavailable, "there is no store"))
		if e.o.Store != nil {
			put, cancel := context.WithTimeout(ctx, putWithin)
			ref, err = e.o.Store.Put(put, string(p.Data))
			cancel()
		}
		if err != nil {
			e.log.WarnContext(ctx, "an image was not stored; the model does not see it", "err", err)
			r.Content += "\n[an image could not be kept, so you cannot see it]"
			continue
		}
		r.Images = append(r.Images, journal.Image{MediaType: p.MediaType, Ref: ref, Size: len(p.Data)})
	}
}

// image returns the bytes of an image.
func (e *Engine) image(ctx context.Context, i model.Image) ([]byte, error) {
	if e.o.Store == nil {
		return nil, team.Errorf(team.Unavailable, "there is no store")
	}
	get, cancel := context.WithTimeout(ctx, putWithin)
	defer cancel()
	data, err := e.o.Store.Get(get, i.Ref)
	return []byte(data), err
}

// show adds the images of a result as a user message after the results of the turn: few endpoints
// take an image in a result.
func (c *Conversation) show(r journal.ToolResult) {
	if len(r.Images) == 0 {
		return
	}
	m := userMessage("What " + r.Name + " has shown:")
	for _, i := range r.Images {
		m.Parts = append(m.Parts, model.Part{Type: "image", Image: &model.Image{MediaType: i.MediaType, Ref: i.Ref, Size: i.Size}})
	}
	c.Held = append(c.Held, m)
}

// pictured reports whether m is a message with images.
func pictured(m *model.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p model.Part) bool { return p.Image != nil })
}

// unpictured returns a copy of m with a line in place of each image.
func unpictured(m *model.Message) *model.Message {
	short := *m
	short.Parts = nil
	for _, p := range m.Parts {
		if p.Image != nil {
			p = model.Part{Type: "text", Text: fmt.Sprintf("[%s, %d bytes, was left out to save room]", p.Image.MediaType, p.Image.Size)}
		}
		short.Parts = append(short.Parts, p)
	}
	return &short
}

// boundImages leaves out the oldest images if there are too many.
func (c *Conversation) boundImages() {
	images, bytes := 0, 0
	for i, m := range slices.Backward(c.Messages) {
		for _, p := range m.Parts {
			if p.Image != nil {
				images, bytes = images+1, bytes+p.Image.Size
			}
		}
		if pictured(m) && (images > maxImages || bytes > maxImageBytes) {
			c.Messages[i] = unpictured(m) // which may be part of a request already
		}
	}
}
