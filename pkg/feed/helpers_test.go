package feed

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"net/url"
	"strconv"
	"testing"
)

// sealed is a cursor that says b.
func sealed(b []byte) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b[:len(b):len(b)], crc32.ChecksumIEEE(b)))
}

func portOf(t *testing.T, server string) int {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
