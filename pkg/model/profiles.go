package model

import "encoding/json"

const (
	unknownEndpoint = "unknown"
	noAnswer        = "(no answer)"
	goOn            = "(go on)"
	seen            = "(seen)"

	// anyName is what OpenAI demands of a tool's name ("string does not match
	// pattern", with a length of 64 in its reference), and nobody less.
	anyName = `^[a-zA-Z0-9_-]{1,64}$`
)

// Ids of calls come from any endpoint, since a conversation may continue at another: Kimi's are "functions.bash:0",
// some have 80 characters. OpenAI takes 40 ("string too long. Expected a string with maximum length 40",
// openclaw/openclaw#875), Anthropic letters, digits, _ and - (BerriAI/litellm#17343, Portkey-AI/gateway#1062). A
// profile that may have either behind it is shortID too. Servers that run the model's own template get the model's own
// ids.

// reasoningFields are the fields with a model's thoughts.
var reasoningFields = []string{"reasoning", "reasoning_content", "reasoning_details"}

// overResponses are OpenAI's models that take function tools over Responses only: "Function tools with reasoning_effort
// are not supported for gpt-5.6 in /v1/chat/completions", also without an effort (BerriAI/litellm#34569,
// charmbracelet/crush#2913, openai/openai-openapi#541). The pro, codex and deep-research models never had another
// protocol.
var overResponses = []string{
	"gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-5.7", "gpt-5.8", "gpt-5.9", "gpt-6", "gpt-7",
	"codex", "gpt-5-pro", "gpt-5.1-pro", "gpt-5.2-pro", "o1-pro", "o3-pro", "o3-deep-research", "o4-mini-deep-research",
}

// patchers are OpenAI's models that are trained on the patches of Codex.
var patchers = []string{"gpt-5", "gpt-6", "codex"}

// profiles is the table. The first that serves a base URL counts, so narrower Hosts come before wider ones; unknown is
// the last.
var profiles = []profile{
	{
		Name: "openai", Hosts: []string{"api.openai.com", "*.api.openai.com"},
		Wire: chat, ResponsesModels: overResponses,
		// Its limit counts the thinking too, so a small one leads to turns without text. Reasoning models refuse
		// max_tokens, which is deprecated for all.
		LimitField: "max_completion_tokens", MaxOutput: 32_000, AskUsage: true,
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: null, Images: true, CallIDs: shortID, Names: anyName, Patches: patchers,
	},
	{
		// learn.microsoft.com, Azure OpenAI reference 2024-10-21: the deployment is in the address, the key in a separate
		// header, the version in the query.
		Name: "azure-classic", Hosts: []string{"*.openai.azure.com/openai/deployments", "*.cognitiveservices.azure.com/openai/deployments"},
		Wire: chat, KeyHeader: "api-key", Query: "api-version=2024-12-01-preview",
		// A deployment's name need not tell the model; gpt-5 behind one refuses
		// max_tokens (OpenHands/OpenHands#11662).
		LimitField: "max_completion_tokens", MaxOutput: 32_000, AskUsage: true,
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: null, Images: true, CallIDs: shortID, Names: anyName,
	},
	{
		// learn.microsoft.com, api-version-lifecycle: /openai/v1 without a version.
		Name: "azure", Hosts: []string{"*.openai.azure.com", "*.services.ai.azure.com", "*.cognitiveservices.azure.com"},
		Wire: chat, ResponsesModels: overResponses, KeyHeader: "api-key",
		LimitField: "max_completion_tokens", MaxOutput: 32_000, AskUsage: true,
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: null, Images: true, CallIDs: shortID, Names: anyName, Patches: patchers,
	},
	{
		Name: "vllm", // its port 8000 is everybody's
		Wire: chat,
		// The limit is not lowered by the server: prompt and limit over the window are
		// a 400 (vllm-project/vllm#42474).
		LimitField: "max_tokens", MaxOutput: 8000, AskUsage: true,
		// Templates of open models refuse users in a row, and content that is no text.
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: emptyText, MergeUsers: true,
		Echo: reasoningFields, Names: anyName,
	},
	{
		Name: "ollama", Hosts: []string{":11434"},
		Wire: chat,
		// docs.ollama.com/context-length: 4k below 24 GiB of video memory, whatever the model; a longer prompt is cut
		// silently.
		Window: 4096, LimitField: "max_tokens", MaxOutput: 8000, AskUsage: true,
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: emptyText, MergeUsers: true,
		Echo: reasoningFields, Names: anyName,
	},
	{
		Name: "llamacpp", // its port 8080 is everybody's
		Wire: chat,
		// An empty turn is a 400, a null content too (ggml-org/llama.cpp#13471).
		LimitField: "max_tokens", MaxOutput: 8000, AskUsage: true,
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: emptyText,
		// "conversation roles must alternate user and assistant roles except for tool
		// calls and results" (ggml-org/llama.cpp#19851): a user after a result is a
		// second user in a row to such templates.
		MergeUsers: true, AfterTool: seen, BeforeTurn: goOn,
		Echo: []string{"reasoning_content"}, Names: anyName,
	},
	{
		Name: "lmstudio", Hosts: []string{":1234"}, // runs llama.cpp
		Wire:       chat,
		LimitField: "max_tokens", MaxOutput: 8000, AskUsage: true,
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: emptyText,
		MergeUsers: true, AfterTool: seen, BeforeTurn: goOn,
		Echo: []string{"reasoning_content", "reasoning"}, Names: anyName,
	},
	{
		Name:       "litellm", // its port 4000 is everybody's; it speaks for any other
		Wire:       chat,
		LimitField: "max_tokens", MaxOutput: 16_000, AskUsage: true,
		// docs.litellm.ai, prompt caching: marks on content blocks and tools go
		// through to Claude, which caches nothing without them.
		CacheMarks: onBlocks, CacheModels: []string{"claude"},
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: null,
		// thinking_blocks are how Claude's signed thinking comes and must go back.
		Echo: []string{"reasoning_content", "thinking_blocks", "provider_specific_fields"}, CallIDs: shortID, Names: anyName, Patches: patchers,
	},
	{
		Name: "openrouter", Hosts: []string{"openrouter.ai", "*.openrouter.ai"},
		Wire: chat,
		// It refuses with 402 a limit that the credit could not pay for, used or not.
		LimitField: "max_tokens", MaxOutput: 16_000, AskUsage: true,
		// Its docs, AnthropicCacheControlDirective: on top, "the system automatically
		// applies cache breakpoints".
		CacheMarks: onTop, CacheModels: []string{"claude"},
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: emptyText,
		// What is behind it may be Mistral: "Unexpected role" (charmbracelet/crush#279)
		// then teaches the rest.
		MergeUsers: true,
		Echo:       []string{"reasoning", "reasoning_details"}, CallIDs: shortID, Names: anyName, Patches: patchers,
	},
	{
		Name: "deepseek", Hosts: []string{"api.deepseek.com"},
		Wire: chat,
		// The limit counts the thinking.
		LimitField: "max_tokens", MaxOutput: 32_000, AskUsage: true,
		// "Invalid assistant message: content or tool_calls must be set"; a content that
		// is no text is refused too (BerriAI/litellm#9905).
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: emptyText,
		// "The reasoning_content in the thinking mode must be passed back to the API":
		// on every turn; an empty one will do for turns of others
		// (earendil-works/pi#3636, architects-toolkit/SmartHopper#660).
		Echo: []string{"reasoning_content"}, Always: "reasoning_content", CallIDs: shortID, Names: anyName,
	},
	{
		Name: "qwen", Hosts: []string{"dashscope*.aliyuncs.com", "*.dashscope*.aliyuncs.com"},
		Wire:       chat,
		LimitField: "max_tokens", MaxOutput: 8000, AskUsage: true,
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: emptyText, MergeUsers: true,
		Echo: []string{"reasoning_content"}, CallIDs: shortID, Names: anyName,
	},
	{
		Name: "gemini", Hosts: []string{"generativelanguage.googleapis.com", "*aiplatform.googleapis.com"},
		Wire: chat,
		// The limit counts the thinking.
		LimitField: "max_tokens", MaxOutput: 32_000, AskUsage: true,
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: absent, Images: true,
		// "Function call is missing a thought_signature": extra_content has it, which goes back. A call of another model
		// has none; ai.google.dev, thought-signatures, names this value for that case.
		Echo:    []string{"extra_content"},
		Foreign: map[string]json.RawMessage{"extra_content": json.RawMessage(`{"google":{"thought_signature":"skip_thought_signature_validator"}}`)},
		CallIDs: shortID,
		Names:   `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`, // its reference: begins with a letter or an underscore
		// "Unknown name "additionalProperties" ... Cannot find field", and so on: its
		// schemas are a part of OpenAPI's (openswarm-ai/openswarm#24,
		// zed-industries/zed#44875).
		SchemaDrop: []string{
			"$schema", "$id", "$comment", "$defs", "definitions", "additionalProperties", "patternProperties", "propertyNames",
			"unevaluatedProperties", "dependentRequired", "const", "examples", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
			"uniqueItems", "contentEncoding", "contentMediaType", "readOnly", "writeOnly", "deprecated",
		},
		SchemaOneType: true,
		SchemaFull:    true, // "properties: should be non-empty for OBJECT type" (MarkusPfundstein/mcp-obsidian#21)
	},
	{
		Name: "mistral", Hosts: []string{"api.mistral.ai", "codestral.mistral.ai"},
		Wire: chat,
		// "extra_forbidden" for stream_options (dnakov/anon-kode#53), for
		// max_completion_tokens (editor-code-assistant/eca#231) and for
		// reasoning_content (charmbracelet/crush#1590). Usage comes unasked.
		LimitField: "max_tokens", MaxOutput: 16_000,
		// "Assistant message must have either content or tool_calls, but not none"
		// (OpenHands/OpenHands#8685).
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: emptyText,
		// "Unexpected role 'user' after role 'tool'" (avante-corp/avante.nvim#2695).
		MergeUsers: true, AfterTool: seen, BeforeTurn: goOn,
		// "Tool call id was ... but must be a-z, A-Z, 0-9, with a length of 9"
		// (karthink/gptel#1203).
		CallIDs: nineID, Images: true, Names: anyName,
	},
	{
		Name: "anthropic", Hosts: []string{"api.anthropic.com"},
		Wire: messages, KeyHeader: "x-api-key", Headers: map[string]string{"anthropic-version": "2023-06-01"},
		MaxOutput: 32_000, CacheMarks: onBlocks, CacheModels: []string{""}, // any
		Images: true, CallIDs: shortID, Names: anyName,
	},
	{
		Name: "anthropic-compat", // the same host's layer for clients of OpenAI
		Wire: chat,
		// docs.anthropic.com, OpenAI SDK compatibility: no caching, no thinking shown.
		LimitField: "max_tokens", MaxOutput: 32_000, AskUsage: true,
		// "text content blocks must be non-empty" also beside calls
		// (agno-agi/agno#3137).
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: absent, Images: true, CallIDs: shortID, Names: anyName,
	},
	{
		Name: "groq", Hosts: []string{"api.groq.com"},
		Wire: chat,
		// "property 'reasoning_content' is unsupported" at the second turn
		// (janhq/jan#8136), and "property 'reasoning'" of some models
		// (musistudio/llms#64).
		LimitField: "max_completion_tokens", MaxOutput: 8000, AskUsage: true,
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: emptyText, CallIDs: shortID, Names: anyName,
	},
	{
		Name: "cerebras", Hosts: []string{"api.cerebras.ai"},
		Wire: chat,
		// "messages.2.assistant.reasoning_content: property ... is unsupported", code
		// wrong_api_format (Kilo-Org/kilocode#10375, QwenLM/qwen-code#11045).
		LimitField: "max_completion_tokens", MaxOutput: 8000, AskUsage: true,
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: emptyText, CallIDs: shortID, Names: anyName,
	},
	{
		// The fields that most accept. Errors teach the rest.
		Name: unknownEndpoint,
		Wire: chat,
		// OpenAI's reasoning models behind a proxy that passes the field on.
		LimitField: "max_tokens", LimitRenamed: []string{"gpt-5", "gpt-6", "o1", "o3", "o4"}, MaxOutput: 8000, AskUsage: true,
		SystemRole: "system", EmptyTurn: noAnswer, WithCalls: emptyText,
		Echo: []string{"*"}, Names: anyName,
	},
}
