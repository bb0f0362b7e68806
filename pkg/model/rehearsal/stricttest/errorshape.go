package stricttest

import (
	"net/http"
	"strconv"
	"strings"
)

// Endpoints encode an error in JSON of several shapes.

func openAIError(r *refusal) any {
	return map[string]any{"error": map[string]any{"message": r.Error(), "type": r.kind, "param": nil, "code": orNull(r.code)}}
}

func flatError(r *refusal) any {
	return map[string]any{"message": r.Error(), "type": r.kind, "param": "validation_error", "code": orNull(r.code)}
}

func googleError(r *refusal) any {
	return []any{map[string]any{"error": map[string]any{"code": r.status, "message": r.Error(), "status": r.code}}}
}

// mistralError has two forms: its own, and that of the library which checks the body.
func mistralError(r *refusal) any {
	doc := map[string]any{"object": "error", "message": r.Error(), "type": r.kind, "param": nil, "code": orNull(r.code)}
	if r.status == http.StatusUnprocessableEntity {
		loc := []any{"body"}
		for _, step := range strings.Split(r.where, ".") {
			if n, err := strconv.Atoi(step); err == nil {
				loc = append(loc, n)
				continue
			}
			loc = append(loc, step)
		}
		doc["message"] = map[string]any{"detail": []any{map[string]any{"type": "extra_forbidden", "loc": loc, "msg": r.Error()}}}
	}
	return doc
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
