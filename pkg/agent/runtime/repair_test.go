package runtime

import "testing"

func TestUnreadableText(t *testing.T) {
	const want = "I cannot go on: its journal cannot be read: record 7 is damaged\n" +
		"My task is back on the board. A person must repair log.coder-1; then I am there again."
	if got := unreadableText("coder-1", "its journal cannot be read: record 7 is damaged"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
