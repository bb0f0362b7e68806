package blob

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// KeepWithin limits the time to store a text: an agent waits meanwhile.
const KeepWithin = 10 * time.Second

// Shown returns text if it has at most limit bytes. Else it stores all, of which text is the readable form,
// with keep and returns the [Excerpt] of text. If keep is nil or fails, the excerpt has no reference.
func Shown(ctx context.Context, text, all string, limit int, keep func(ctx context.Context, text string) (ref string, err error)) string {
	if len(text) <= limit {
		return text
	}
	ref := ""
	if keep != nil {
		ctx, cancel := context.WithTimeout(ctx, KeepWithin)
		defer cancel()
		var err error
		if ref, err = keep(ctx, Readable(all)); err != nil {
			ref = "" // the excerpt states that it is not kept
		}
	}
	return Excerpt(text, limit, ref)
}

// Readable returns text as valid UTF-8 without zero bytes, which read_file takes as text.
func Readable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// Excerpt returns text if it has at most limit bytes. Else it returns its head and its tail with a note
// between them: how much is left out, and how to read it under ref, or, with ref "", that it is not stored.
// It cuts between lines if that keeps most of the room, else between characters. The result has at most limit
// bytes, but never fewer than the note, about 200.
func Excerpt(text string, limit int, ref string) string {
	if len(text) <= limit {
		return text
	}
	// No note is longer than one with the largest numbers.
	room := max(0, limit-len(note(len(text), len(text), len(text), len(text), ref)))
	head, first := headOf(text, room*2/3)
	tail, last, all := tailOf(text, room-head)
	between := note(tail-head, first, last, all, ref)
	if head == 0 || text[head-1] == '\n' {
		between = strings.TrimPrefix(between, "\n")
	}
	return text[:head] + between + text[tail:]
}

// headOf returns where to end a head of at most room bytes, and the number of the first
// line that is not in it as a whole.
func headOf(text string, room int) (end, first int) {
	for number, at := range lines(text) {
		if at > room {
			break
		}
		end, first = at, number
	}
	if end < room/2 {
		end = cutBefore(text, room)
	}
	return end, first
}

// tailOf returns where to begin a tail of at most room bytes, the number of the last
// line that is not in it as a whole, and how many lines there are.
func tailOf(text string, room int) (begin, last, all int) {
	begin = len(text) + 1
	for number, at := range lines(text) {
		if at >= len(text)-room && begin > len(text) {
			begin, last = at, number-1
		}
		all = number - 1
	}
	if len(text)-begin < room/2 {
		begin = cutAfter(text, len(text)-room)
	}
	return begin, last, all
}

// note returns the line in place of the bytes that are left out.
func note(bytes, first, last, all int, ref string) string {
	how := "they could not be kept"
	if ref != "" {
		how = fmt.Sprintf("to read them, read %q from offset %d", ref, first)
	}
	return fmt.Sprintf("\n[%d bytes are left out here, lines %d to %d of %d; %s]\n", bytes, first, last, all, how)
}
