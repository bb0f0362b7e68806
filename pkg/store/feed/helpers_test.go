package feed

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
)

// sealed is a cursor that says b.
func sealed(b []byte) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b[:len(b):len(b)], crc32.ChecksumIEEE(b)))
}
