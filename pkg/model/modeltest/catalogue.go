package modeltest

import (
	"net/http"
	"strings"
	"time"

	"agentteam/pkg/model"
)

// Turns returns turns that are useless, or that other endpoints refuse in a conversation. The client accepts each as a
// turn, so none has a reason. Each call returns a copy.
func Turns() []Fault {
	return []Fault{
		streamed("empty", "", event(stop), event("[DONE]")),
		streamed("length", "", event(text("half of")), event(`{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`), event("[DONE]")),
		streamed("length, nothing said", "", event(`{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`), event("[DONE]")),
		streamed("no finish reason", "", event(oneCall("call_1", "{}")), event("[DONE]")),
		streamed("odd ids", "", event(oneCall("functions.list_tasks:0", "{}")), event(called), event("[DONE]")),
		streamed("long ids", "", event(oneCall("call_"+strings.Repeat("0123456789", 7), "{}")), event(called), event("[DONE]")),
		streamed("arguments are no object", "", event(oneCall("call_1", `[\"ls\"]`)), event(called), event("[DONE]")),
		streamed("arguments are text", "", event(oneCall("call_1", `\"ls -la\"`)), event(called), event("[DONE]")),
	}
}

// Faults returns the catalogue, in the words of the endpoints with each fault. Each call returns a copy.
func Faults() []Fault {
	return []Fault{
		// Of the account, the key, the model or the address.
		refused("401", model.BadKey, 401, `{"error":{"message":"Incorrect API key provided: sk-ab***yz.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`),
		refused("402", model.NoCredit, 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`),
		refused("403", model.BadKey, 403, `{"error":{"message":"Country, region, or territory not supported","type":"request_forbidden","param":null,"code":"unsupported_country_region_territory"}}`),
		refused("404, no model", model.UnknownModel, 404, `{"error":{"message":"The model 'm' does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`),
		refused("404, no address", model.UnknownModel, 404, "404 page not found\n"),
		refused("404, Ollama", model.UnknownModel, 404, `{"error":"model 'm' not found"}`),
		refused("405", model.NoEndpoint, 405, `{"detail":"Method Not Allowed"}`),
		refused("429, quota", model.NoCredit, 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`),
		refused("400, no credit at Anthropic", model.NoCredit, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`),
		refused("400, bad key at Gemini", model.BadKey, 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}]`),
		fault("a redirect", model.NoEndpoint, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login", http.StatusFound)
		}),
		other("200, a web page", model.NoEndpoint, "text/html", "<!doctype html>\n<html><head><title>Log in</title></head></html>\n"),
		other("200, text", model.NoEndpoint, "text/plain", "It works!\n"),
		other("200, other JSON", model.NoEndpoint, "application/json", `{"status":"ok"}`),

		// Of the conversation.
		refused("400, context length", model.ContextLength, 400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`).with(8192),
		refused("400, context length at llama.cpp", model.ContextLength, 400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9001,"n_ctx":4096}}`).with(4096),
		refused("400, context length at Anthropic", model.ContextLength, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215000 tokens > 200000 maximum"}}`).with(200000),
		refused("413", model.ContextLength, 413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
		refused("400, content filter at Azure", model.ContentFilter, 400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`),
		refused("403, moderation at OpenRouter", model.ContentFilter, 403, `{"error":{"code":403,"message":"Input was refused","metadata":{"reasons":["violence"],"flagged_input":"how do I","provider_name":"OpenAI"}}}`),
		refused("400", model.InvalidRequest, 400, `{"error":{"message":"Invalid 'messages[3].content'","type":"invalid_request_error","param":"messages[3].content","code":"invalid_value"}}`),
		refused("422", model.InvalidRequest, 422, `{"detail":[{"type":"string_type","loc":["body","messages",3,"content"],"msg":"Input should be a valid string","input":{"a":1}}]}`),
		refused("400, failed tool call at Groq", model.FailedCall, 400, `{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=list_tasks{}></function>"}}`),
		refused("400, call of no tool at Groq", model.FailedCall, 400, `{"error":{"message":"tool call validation failed: attempted to call tool 'lst' which was not in request.tools","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"{\"name\": \"lst\"}"}}`),
		streamed("in stream: failed tool call", model.FailedCall, half, "event: error\n", event(`{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","status_code":400,"failed_generation":"x"}}`)),

		// Outages.
		refused("408", model.ServerError, 408, `{"error":{"message":"timeout"}}`),
		refused("409", model.ServerError, 409, `{"error":{"message":"conflict"}}`),
		refused("429", model.RateLimited, 429, `{"error":{"message":"Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`),
		refused("429, Gemini", model.RateLimited, 429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1s"}]}}]`),
		refused("500", model.ServerError, 500, `{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}`),
		refused("502, a web page", model.ServerError, 502, "<html><head><title>502 Bad Gateway</title></head></html>"),
		refused("503", model.ServerError, 503, ""),
		refused("529", model.ServerError, 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
		fault("hangs up at once", model.Connection, hangUp),
		fault("hangs up in the middle", model.Incomplete, func(w http.ResponseWriter, r *http.Request) {
			send(w, "", half)
			hangUp(w, r)
		}),
		streamed("ends in the middle", model.Incomplete, half),
		streamed("ends without a finish reason", model.Incomplete, event(oneCall("lost", `{\"status\":`)), event("[DONE]")),
		streamed("ends in the middle of an event", model.Incomplete, half, "data: "+stop[:40]),
		streamed("no events", model.Incomplete),
		streamed("not JSON", model.Incomplete, half, event(`{"choices":`)),
		silent("no headers"),
		silent("silent in the middle", half),
		fault("keep-alive comments only", model.Silent, func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for r.Context().Err() == nil {
				send(w, "", ": keep-alive\n\n")
				<-tick.C
			}
		}),

		// Errors inside an answer with status 200.
		streamed("in stream: bad key", model.BadKey, event(`{"error":{"message":"Invalid API key","type":"authentication_error","code":"invalid_api_key"}}`)),
		streamed("in stream: quota", model.NoCredit, event(`{"error":{"message":"Insufficient credits","code":402}}`)),
		streamed("in stream: no model", model.UnknownModel, event(`{"error":"model 'm' not found, try pulling it first"}`)),
		streamed("in stream: context length", model.ContextLength, ": OPENROUTER PROCESSING\n\n", event(`{"id":"gen-1","error":{"code":400,"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens."},"choices":[]}`)).with(32768),
		streamed("in stream: context length of a provider behind it", model.ContextLength, event(`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"The input token count (40000) exceeds the maximum number of tokens allowed (32000).\",\"code\":400}}","provider_name":"Google"}}}`)).with(32000),
		streamed("in stream: content filter after text", model.ContentFilter, half, event(`{"error":{"code":"content_filter","message":"The output was filtered"}}`)),
		streamed("in stream: invalid request", model.InvalidRequest, event(`{"object":"error","message":"bad tool schema","type":"BadRequestError","param":null,"code":400}`)),
		streamed("in stream: rate limit", model.RateLimited, event(`{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`)),
		streamed("in stream: overloaded", model.ServerError, half, "event: error\n", event(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)),
		streamed("in stream: error as text", model.ServerError, half, event(`{"error":"upstream broke down"}`)),
		streamed("in stream: provider broke down", model.ServerError, half, event(`{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`)),
		other("JSON with status 200: context length", model.ContextLength, "application/json", `{"error":{"message":"too long","code":"context_length_exceeded"}}`),
		other("JSON with status 200: overloaded", model.ServerError, "application/json", `{"error":{"message":"Overloaded","type":"overloaded_error"}}`),
	}
}
