package workspace

import (
	"bufio"
	"bytes"
	"fmt"
	"image"
	_ "image/gif" // their sizes are looked at
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net/http"
	"slices"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// The bounds of an image: those of the strictest endpoints, which refuse the whole conversation otherwise.
const (
	maxImage = 3_600_000 // bytes, which are 5 MB as they are sent
	maxSide  = 8000      // pixels
)

// imageTypes are the media types that models take.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// imageType returns the media type of the image at the beginning of r; "" if it is not an image.
func imageType(r *bufio.Reader) string {
	head, _ := r.Peek(512) // shorter at the end of the file
	if kind := http.DetectContentType(head); slices.Contains(imageTypes, kind) {
		return kind
	}
	return ""
}

// picture returns the answer with an image. Errors: invalid_argument for an image that is too large or broken;
// unavailable.
func picture(r io.Reader, name, kind string) (tool.Output, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxImage+1))
	switch {
	case err != nil:
		return tool.Output{}, fmt.Errorf("%s: %w", name, reason(err))
	case len(data) > maxImage:
		return tool.Output{}, team.Errorf(team.InvalidArgument, "%s is an image of more than %d bytes", name, maxImage).WithHint("make it smaller with bash, e.g. convert -resize")
	}
	if kind != "image/webp" { // whose format the standard library does not know
		c, _, err := image.DecodeConfig(bytes.NewReader(data))
		switch {
		case err != nil:
			return tool.Output{}, team.Errorf(team.InvalidArgument, "%s is a broken image: %w", name, err)
		case c.Width > maxSide || c.Height > maxSide || c.Width == 0 || c.Height == 0:
			return tool.Output{}, team.Errorf(team.InvalidArgument, "%s is an image of %d x %d pixels, at most %d a side can be shown", name, c.Width, c.Height, maxSide).WithHint("make it smaller with bash, e.g. convert -resize")
		}
	}
	return tool.Output{Value: "", Parts: []tool.Part{{MediaType: kind, Data: data, Name: name}}}, nil
}
