package broker_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/team"
)

func TestFiles(t *testing.T) {
	ctx := t.Context()
	bt, err := brokertest.Connect(t, brokertest.Server(t)).Make(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("交付物 📦\n"), 100_000) // many chunks
	for _, content := range [][]byte{[]byte("first"), large} {
		digest, err := bt.Files.Put(ctx, "T-001/1/报告.md", bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); digest != want {
			t.Errorf("digest %s, want %s", digest, want)
		}
		var got bytes.Buffer
		if err := bt.Files.Get(ctx, "T-001/1/报告.md", &got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), content) {
			t.Errorf("got %d bytes back of %d", got.Len(), len(content))
		}
	}
	if err := bt.Files.Get(ctx, "T-001/2/other.md", new(bytes.Buffer)); team.CodeOf(err) != team.NotFound {
		t.Errorf("a file that was never stored: %v, want not_found", err)
	}
}
