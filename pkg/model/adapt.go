package model

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// adapted returns p adapted to the error e, with which an endpoint has refused a request, and whether that changed it.
// It learns nothing twice, so that an endpoint which keeps refusing is not asked for ever.
func adapted(p profile, e apiError) (profile, bool) {
	text := strings.ToLower(e.message + " " + e.code)
	// Only the first matching lesson counts: a later one would misread its words.
	i := slices.IndexFunc(adaptations, func(l adaptation) bool { return l.about.MatchString(text) })
	taught := p
	if i < 0 || !adaptations[i].learn(&taught, text) {
		return p, false
	}
	return taught, true
}

// adaptation is the lesson of one kind of error. learn changes p and reports whether it did.
type adaptation struct {
	name  string
	about pattern // in small letters
	learn func(p *profile, text string) bool
}

// refusesField matches errors about an unknown field or value.
const refusesField = `unsupported|not support|unknown name|unknown (field|parameter|argument)|unrecognized|extra inputs|extra_forbidden|deprecated for this model|` +
	`not permitted|not allowed|cannot find field|unexpected (field|keyword|property)|additional properties|invalid (field|parameter|property)`

// mostOutput matches errors about the limit of an answer; one of its groups is the number. In order: OpenAI, DeepSeek
// and Qwen, Anthropic, Groq.
var mostOutput = lazy(`supports at most (\d+) completion tokens|` +
	`range of max_tokens (?:is|should be) \[1, ?(\d+)\]|` +
	`max_tokens: \d+ > (\d+), which is the maximum|` +
	"max_(?:completion_)?tokens`? must be less than or equal to `?(\\d+)")

// adaptations are tried in order, special ones first; only the first that matches the error counts. Their comments quote
// errors.
var adaptations = []adaptation{
	{ // "To use function tools, use /v1/responses or set reasoning_effort to 'none'", "only supported in v1/responses"
		"responses",
		lazy(`v1/responses`),
		func(p *profile, _ string) bool { return change(&p.Wire, responses) },
	},
	{ // "max_tokens is too large: 32000. This model supports at most 16384 completion tokens"
		"highest limit",
		mostOutput,
		func(p *profile, text string) bool {
			n, err := strconv.Atoi(strings.Join(mostOutput.FindStringSubmatch(text)[1:], ""))
			return err == nil && n > 0 && (p.MostOutput == 0 || n < p.MostOutput) && change(&p.MostOutput, n)
		},
	},
	{ // "Unsupported parameter: 'max_tokens' ... Use 'max_completion_tokens' instead"
		"limit renamed",
		lazy(`max_completion_tokens['"]? instead`),
		func(p *profile, _ string) bool { return limitIn(p, "max_completion_tokens") },
	},
	{ // {"type":"extra_forbidden","loc":["body","max_completion_tokens"]}
		"limit back",
		lazy(`max_completion_tokens.*(` + refusesField + `)|(` + refusesField + `).*max_completion_tokens`),
		func(p *profile, _ string) bool { return limitIn(p, "max_tokens") },
	},
	{
		"limit unnamed",
		lazy(`\bmax_tokens\b.*(` + refusesField + `)|(` + refusesField + `).*\bmax_tokens\b`),
		func(p *profile, _ string) bool { return limitIn(p, "max_completion_tokens") },
	},
	{ // "The `reasoning_content` in the thinking mode must be passed back", "Missing `reasoning_content` field"
		"reasoning back",
		lazy("missing `?reasoning_content|reasoning_content`? .*(must be passed|is required)"),
		func(p *profile, _ string) bool {
			p.Drop = withoutEntry(p.Drop, "reasoning_content")
			p.Echo = withEntry(p.Echo, "reasoning_content")
			return change(&p.Always, "reasoning_content")
		},
	},
	{ // "tool_use.id: String should match pattern", "Invalid 'messages[3].tool_calls[0].id': string too long", "call_id"
		"short ids",
		lazy(`(tool_use|tool_call_id|call_id|tool_calls\S*id)\b.*(match pattern|string too long|maximum length)`),
		func(p *profile, _ string) bool { return p.CallIDs == anyID && change(&p.CallIDs, shortID) },
	},
	{ // "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."
		"nine letters",
		lazy(`call id .*length of 9`),
		func(p *profile, _ string) bool { return change(&p.CallIDs, nineID) },
	},
	{ // "Conversation roles must alternate", "Unexpected role 'user' after role 'tool'"
		"alternate",
		lazy(`must alternate|unexpected role`),
		func(p *profile, _ string) bool {
			return oneOf(change(&p.MergeUsers, true), change(&p.AfterTool, seen), change(&p.BeforeTurn, goOn))
		},
	},
	{ // "'messages[0].role' does not support 'system' with this model", "System role not supported"
		"system role",
		lazy(`does not support 'system'|system role (is )?not supported|unexpected role 'system'`),
		func(p *profile, _ string) bool {
			return oneOf(change(&p.SystemRole, "user"), change(&p.MergeUsers, true))
		},
	},
	{ // "properties: should be non-empty for OBJECT type"
		"bare objects",
		lazy(`non-empty for object type`),
		func(p *profile, _ string) bool { return change(&p.SchemaFull, true) },
	},
	{ // "must have either content or tool_calls, but not none", "content or tool_calls must be set"
		"empty turn",
		lazy(`content('| )?or '?tool_calls`),
		func(p *profile, _ string) bool { return p.EmptyTurn == "" && change(&p.EmptyTurn, noAnswer) },
	},
	{ // "text content blocks must be non-empty", "messages: text content blocks must contain non-whitespace text"
		"empty content",
		lazy(`\bcontent\b.*(non-empty|must not be empty|cannot be empty|is empty|non-whitespace)`),
		func(p *profile, _ string) bool {
			return oneOf(p.EmptyTurn == "" && change(&p.EmptyTurn, noAnswer), change(&p.WithCalls, absent))
		},
	},
	{ // "messages[2]: missing field `content`", "Expected 'content' to be a string or an array"
		"content beside calls",
		lazy("missing field `?content|'content' to be a string|content (field )?is required"),
		func(p *profile, _ string) bool { return change(&p.WithCalls, emptyText) },
	},
	{ // "invalid type: sequence, expected a string", "content must be a string"
		"plain content",
		lazy(`sequence, expected a string|content must be a string|image_url|(not|n't) support images?|image input`),
		func(p *profile, _ string) bool {
			// In Messages all content is blocks, so the error is about something else.
			return oneOf(change(&p.Images, false), p.Wire != messages && change(&p.CacheMarks, noMarks))
		},
	},
	{ // "Proto field is not repeating, cannot start list" at a type
		"one type",
		lazy(`not repeating, cannot start list.*type|type.*not repeating, cannot start list`),
		func(p *profile, _ string) bool { return change(&p.SchemaOneType, true) },
	},
	{ // "Invalid `signature` in `thinking` block ... The block is bound to a different conversation",
		// "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`"
		"thoughts away",
		lazy("invalid `?signature`? in `?thinking|bound to a different conversation|cannot contain `?thinking"),
		func(p *profile, _ string) bool {
			sent := !slices.Contains(p.Drop, answerBlocks)
			p.Drop = withEntry(p.Drop, answerBlocks)
			return sent
		},
	},
	{ // "Expected `thinking` or `redacted_thinking`, but found `tool_use`", "adaptive thinking is not supported on this model"
		"no thinking",
		lazy("expected `?thinking`? or `?redacted_thinking|adaptive thinking is not supported"),
		func(p *profile, _ string) bool {
			p.Drop = withEntry(p.Drop, answerBlocks)
			return dropExtra(p, "thinking")
		},
	},
	{ // "This model does not support the effort parameter."
		"no effort",
		lazy("support the effort parameter"),
		func(p *profile, _ string) bool {
			return dropExtra(p, "output_config") || dropExtra(p, effortField)
		},
	},
	{
		"fields",
		lazy(refusesField),
		func(p *profile, text string) bool { return oneOf(dropKeywords(p, text), dropField(p, text)) },
	},
}

// limitIn moves every limit to the field.
func limitIn(p *profile, field string) bool {
	renamed := len(p.LimitRenamed) > 0 && field != "max_completion_tokens"
	p.LimitRenamed = nil
	return oneOf(renamed, change(&p.LimitField, field))
}

var (
	schemaError  = lazy(`function|tool|parameters|schema`)
	schemaQuoted = lazy("['\"`](" + `\$?[a-z]+` + ")['\"`]")
)

// keywords are those of JSON Schema that an endpoint may not know and that can be left out: the tools check their
// arguments themselves.
var keywords = []string{
	"$schema", "$id", "$comment", "additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties",
	"dependentRequired", "const", "examples", "default", "format", "pattern", "title", "minLength", "maxLength", "minimum", "maximum",
	"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
	"contentEncoding", "contentMediaType", "readOnly", "writeOnly", "deprecated",
}

// dropKeywords learns the keywords of schemas in the error: "Unknown name "additionalProperties" at
// 'tools[0].function_declarations[0].parameters'".
func dropKeywords(p *profile, text string) bool {
	if !schemaError.MatchString(text) {
		return false
	}
	changed := false
	for _, found := range schemaQuoted().FindAllStringSubmatch(text, -1) {
		i := slices.IndexFunc(keywords, func(k string) bool { return strings.ToLower(k) == found[1] })
		if i >= 0 && !slices.Contains(p.SchemaDrop, keywords[i]) {
			p.SchemaDrop = withEntry(p.SchemaDrop, keywords[i])
			changed = true
		}
	}
	return changed
}

// dropExtra drops an extra field, and reports whether it may have been sent: a request may have set the effort.
func dropExtra(p *profile, field string) bool {
	if _, set := p.Extra[field]; !set && field != effortField || slices.Contains(p.Drop, field) {
		return false
	}
	p.Drop = withEntry(p.Drop, field)
	return true
}

// dropField learns the fields in the error that we send but need not: the extra ones, and those that go back to the
// model.
func dropField(p *profile, text string) bool {
	text, _, _ = strings.Cut(text, ". use ") // what it advises it takes
	sent := slices.Concat(slices.Sorted(maps.Keys(p.Extra)), p.Echo, reasoningFields,
		[]string{effortField, "stream_options", "output_config", "cache_control", "extra_content", "include", "store", "parallel_tool_calls"})
	changed := false
	for _, f := range sent {
		if slices.Contains(p.Drop, f) || !mentions(text, f) {
			continue
		}
		p.Drop = withEntry(p.Drop, f)
		if p.Always == f {
			p.Always = ""
		}
		if f == "cache_control" {
			p.CacheMarks = noMarks
		}
		changed = true
	}
	return changed
}

// mentions reports whether the text names the field. A field that is also a plain word, such as reasoning, must be
// quoted or in a path.
func mentions(text, field string) bool {
	before := `(^|[^a-z0-9_])`
	if !strings.Contains(field, "_") {
		before = "['\"`.]"
	}
	return regexp.MustCompile(before + regexp.QuoteMeta(strings.ToLower(field)) + `([^a-z0-9_]|$)`).MatchString(text)
}

// change sets *to and reports whether that changed it.
func change[T comparable](to *T, v T) bool {
	was := *to
	*to = v
	return was != v
}

// oneOf reports whether a change is true; unlike || it has all of them made.
func oneOf(changes ...bool) bool { return slices.Contains(changes, true) }

// withEntry returns a copy of list with s, withoutEntry a copy without it: profiles share their lists.
func withEntry(list []string, s string) []string {
	return append(withoutEntry(list, s), s)
}

func withoutEntry(list []string, s string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(x string) bool { return x == s })
}
