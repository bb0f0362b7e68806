package model

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// What endpoints answer, judged: the status, the body, and what is to be made of it.
// A status of 200 means that the error came inside the answer.
func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		want   Reason
		window int
	}{
		"401":                                 {401, `{"error":{"message":"no"}}`, BadKey, 0},
		"401, with the words of another":      {401, `{"error":{"message":"model not found or too many tokens"}}`, BadKey, 0},
		"402":                                 {402, ``, NoCredit, 0},
		"402, OpenRouter":                     {402, `{"error":{"code":402,"message":"This request requires more credits, or fewer max_tokens. You requested up to 8000 tokens, but can only afford 210."}}`, NoCredit, 0},
		"403":                                 {403, `Forbidden`, BadKey, 0},
		"403, Cloudflare":                     {403, `<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head></html>`, BadKey, 0},
		"403, Anthropic":                      {403, `{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."}}`, BadKey, 0},
		"403, moderation":                     {403, `{"error":{"code":403,"message":"Your input was refused","metadata":{"reasons":["hate"],"flagged_input":"x"}}}`, ContentFilter, 0},
		"403, free tier, DashScope":           {403, `{"error":{"code":"AllocationQuota.FreeTierOnly","message":"The free tier of the model has been exhausted."}}`, NoCredit, 0},
		"404":                                 {404, `404 page not found`, UnknownModel, 0},
		"404, a web server":                   {404, `<!DOCTYPE HTML><html><head><title>Error response</title></head></html>`, NoEndpoint, 0},
		"404, Anthropic":                      {404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`, UnknownModel, 0},
		"404, vLLM":                           {404, `{"object":"error","message":"The model ` + "`m`" + ` does not exist.","type":"NotFoundError","param":null,"code":404}`, UnknownModel, 0},
		"404, Azure":                          {404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, UnknownModel, 0},
		"404, Ollama":                         {404, `{"error":"model 'x' not found"}`, UnknownModel, 0},
		"400, OpenRouter's unknown model":     {400, `{"error":{"message":"gpt-99 is not a valid model ID","code":400}}`, UnknownModel, 0},
		"400, DeepSeek's unknown model":       {400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, UnknownModel, 0},
		"400, Mistral's unknown model":        {400, `{"object":"error","message":"Invalid model: foo","type":"invalid_model","param":null,"code":"1500"}`, UnknownModel, 0},
		"400, LiteLLM's unknown model":        {400, `{"error":{"message":"/chat/completions: Invalid model name passed in model=foo. Call /v1/models to view available models","type":"invalid_request_error","param":"None","code":"400"}}`, UnknownModel, 0},
		"405":                                 {405, `{"detail":"Method Not Allowed"}`, NoEndpoint, 0},
		"308":                                 {308, ``, NoEndpoint, 0},
		"400, Ollama without tools":           {400, `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error","param":null,"code":null}}`, NoTools, 0},
		"400, vLLM without tools":             {400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}`, NoTools, 0},
		"500, llama.cpp without tools":        {500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`, NoTools, 0},
		"404, OpenRouter without tools":       {404, `{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing","code":404}}`, NoTools, 0},
		"410":                                 {410, `{"error":{"message":"This model is gone"}}`, UnknownModel, 0},
		"408":                                 {408, ``, ServerError, 0},
		"409":                                 {409, ``, ServerError, 0},
		"413":                                 {413, `<html><title>413 Request Entity Too Large</title></html>`, ContextLength, 0},
		"413, Anthropic":                      {413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, ContextLength, 0},
		"413, Groq":                           {413, `{"error":{"message":"Request too large for model m in organization o on tokens per minute (TPM): Limit 6000, Requested 7500","type":"tokens","code":"rate_limit_exceeded"}}`, ContextLength, 0},
		"415":                                 {415, ``, InvalidRequest, 0},
		"422":                                 {422, `{"detail":"Unprocessable"}`, InvalidRequest, 0},
		"422, FastAPI quotes the input":       {422, `{"detail":[{"loc":["body","messages",3,"content"],"msg":"Field required","type":"missing","input":"prompt is too long: insufficient_quota"}]}`, InvalidRequest, 0},
		"422, Mistral":                        {422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{}}]},"type":"invalid_request_error","param":null,"code":null}`, InvalidRequest, 0},
		"429":                                 {429, ``, RateLimited, 0},
		"429, OpenAI":                         {429, `{"error":{"message":"Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, RateLimited, 0},
		"429, too large for a whole minute":   {429, `{"error":{"message":"Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, ContextLength, 0},
		"429, quota":                          {429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, NoCredit, 0},
		"429, quota by its text":              {429, `{"error":{"message":"You exceeded your current quota"}}`, NoCredit, 0},
		"429, Moonshot's quota":               {429, `{"error":{"type":"exceeded_current_quota_error","message":"Your account is suspended, please check your plan"}}`, NoCredit, 0},
		"429, Z.AI's balance":                 {429, `{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}`, NoCredit, 0},
		"429, Gemini's minute":                {429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37.5s"}]}}]`, RateLimited, 0},
		"429, Gemini without a delay":         {429, `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED"}}`, RateLimited, 0},
		"429, Bedrock":                        {429, `{"message":"Too many tokens, please wait before trying again."}`, RateLimited, 0},
		"429, Cerebras":                       {429, `{"message":"Tokens per minute limit exceeded - too many tokens processed.","type":"too_many_tokens_error","param":"quota","code":"token_quota_exceeded"}`, RateLimited, 0},
		"429, Mistral":                        {429, `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"invalid_request_error","param":null,"code":null}`, RateLimited, 0},
		"500":                                 {500, `oops`, ServerError, 0},
		"500, the model's fault":              {500, `{"error":{"message":"The model produced invalid content.","type":"model_error"}}`, ServerError, 0},
		"500 around a context length":         {500, `{"error":{"message":"litellm.ContextWindowExceededError: This model's maximum context length is 131,072 tokens.","code":"500"}}`, ContextLength, 131072},
		"501, a web server":                   {501, `<!DOCTYPE HTML><html><head><title>Error response</title></head></html>`, NoEndpoint, 0},
		"501":                                 {501, ``, NoEndpoint, 0},
		"502":                                 {502, `<html>`, ServerError, 0},
		"503, a proxy":                        {503, `<html><title>503 Service Temporarily Unavailable</title></html>`, ServerError, 0},
		"504, a proxy":                        {504, `<html><title>504 Gateway Time-out</title></html>`, ServerError, 0},
		"503":                                 {503, `{"error":{"message":"That model is currently overloaded with other requests","type":"server_error"}}`, ServerError, 0},
		"503, llama.cpp loads":                {503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, ServerError, 0},
		"529":                                 {529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ServerError, 0},
		"400":                                 {400, `{"error":{"message":"Invalid 'messages'","type":"invalid_request_error","code":null}}`, InvalidRequest, 0},
		"400, one word":                       {400, `nope`, InvalidRequest, 0},
		"400, an id that is too long":         {400, `{"error":{"message":"Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 50 instead.","type":"invalid_request_error","code":"string_above_max_length"}}`, InvalidRequest, 0},
		"400, an unsupported parameter":       {400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`, InvalidRequest, 0},
		"400, Anthropic's credit":             {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing"}}`, NoCredit, 0},
		"400, DashScope's arrears":            {400, `{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}}`, NoCredit, 0},
		"400, OpenAI's billing":               {400, `{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","code":"billing_hard_limit_reached"}}`, NoCredit, 0},
		"400, Gemini's key":                   {400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`, BadKey, 0},
		"400, Gemini's expired key":           {400, `{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}`, BadKey, 0},
		"too long, OpenAI":                    {400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 128005 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, ContextLength, 128000},
		"too long, OpenAI's Responses":        {400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`, ContextLength, 0},
		"too long, vLLM":                      {400, `{"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 8192 tokens and your request has 3000 input tokens (8000 > 8192 - 3000).","type":"BadRequestError","param":null,"code":400}`, ContextLength, 8192},
		"too long, vLLM's prompt":             {400, `{"error":{"message":"The decoder prompt (length 40000) is longer than the maximum model length of 32768.","type":"BadRequestError","code":400}}`, ContextLength, 32768},
		"too long, llama.cpp":                 {400, `{"error":{"code":400,"message":"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`, ContextLength, 4096},
		"too long, Anthropic":                 {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215000 tokens > 200000 maximum"}}`, ContextLength, 200000},
		"too long with its answer, Anthropic": {400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 188240 + 21333 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"}}`, ContextLength, 200000},
		"too long, Gemini":                    {400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, ContextLength, 1048576},
		"too long, Mistral":                   {400, `{"object":"error","message":"Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`, ContextLength, 32768},
		"too long, Mistral's older words":     {400, `{"message":"Too many tokens in the prompt: 40000","code":"3051"}`, ContextLength, 0},
		"too long, SGLang":                    {400, `{"object":"error","message":"The input (40000 tokens) is longer than the model's context length (32768 tokens).","type":"BadRequestError","code":400}`, ContextLength, 32768},
		"too long, xAI":                       {400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 150000 tokens."}`, ContextLength, 131072},
		"too long, DashScope":                 {400, `{"error":{"code":"invalid_parameter_error","message":"Range of input length should be [1, 30720]"}}`, ContextLength, 30720},
		"too long, Moonshot":                  {400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144","type":"invalid_request_error"}}`, ContextLength, 262144},
		"too long, LM Studio":                 {400, `{"error":"Trying to keep the first 6000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, ContextLength, 4096},
		"too long, Groq":                      {400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, ContextLength, 0},
		"too long, Copilot":                   {400, `{"error":{"message":"prompt token count of 150000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, ContextLength, 128000},
		"too long, Bedrock":                   {400, `{"message":"Input is too long for requested model."}`, ContextLength, 0},
		"filter, Azure":                       {400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, ContentFilter, 0},
		"filter, OpenAI":                      {400, `{"error":{"message":"Your request was rejected","type":"invalid_request_error","code":"content_policy_violation"}}`, ContentFilter, 0},
		"filter, OpenAI's reasoning":          {400, `{"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy.","type":"invalid_request_error","code":"invalid_prompt"}}`, ContentFilter, 0},
		"filter, DeepSeek":                    {400, `{"error":{"message":"Content Exists Risk","type":"invalid_request_error","code":"invalid_request_error"}}`, ContentFilter, 0},
		"filter, DashScope":                   {400, `{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content."}}`, ContentFilter, 0},

		"in the stream: a number for a code":    {200, `{"error":{"message":"no","code":401}}`, BadKey, 0},
		"in the stream: a text for a code":      {200, `{"error":{"message":"no","code":"429"}}`, RateLimited, 0},
		"in the stream: a bad key":              {200, `{"error":{"message":"no","code":"invalid_api_key"}}`, BadKey, 0},
		"in the stream: quota":                  {200, `{"error":{"message":"no","code":"insufficient_quota"}}`, NoCredit, 0},
		"in the stream: overloaded":             {200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ServerError, 0},
		"in the stream: a rate limit":           {200, `{"error":{"type":"rate_limit_error","message":"slow down"}}`, RateLimited, 0},
		"in the stream: an invalid request":     {200, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.3: bad"}}`, InvalidRequest, 0},
		"in the stream: a message only":         {200, `{"error":{"message":"something went wrong"}}`, ServerError, 0},
		"in the stream: a text":                 {200, `{"error":"something went wrong"}`, ServerError, 0},
		"in the stream: a provider's own words": {200, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 9 tokens > 200000 maximum\"}}"}}}`, ContextLength, 200000},
		"in the stream: a provider that is out": {200, `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"upstream connect error"}}}`, ServerError, 0},
		"in the stream: several":                {200, `{"errors":[{"message":"AiError: too many tokens in the prompt","code":5021}],"success":false}`, ContextLength, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := parseError([]byte(tt.body))
			if tt.status >= 300 {
				e.status = tt.status
			}
			got, advice := judge(tt.status, e)
			if got != tt.want || advice != advices[tt.want] || advice == "" {
				t.Errorf("judge = %s, %s; want %s (read as %+v)", got, advice, tt.want, e)
			}
			window := e.window
			if window == 0 && got == ContextLength {
				window = windowIn(e.message)
			}
			if window != tt.window {
				t.Errorf("window %d, want %d", window, tt.window)
			}
		})
	}
}

func TestErrorTexts(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"a"}}`:              "a",
		`{"error":"a"}`:                          "a",
		`[{"error":{"message":"a"}}]`:            "a",
		`{"detail":"a"}`:                         "a",
		`{"message":"a"}`:                        "a",
		`{"object":"error","message":"a"}`:       "a",
		`{"error":{"message":{"detail":"a"}}}`:   "a",
		`{"detail":[{"loc":["b",0],"msg":"a"}]}`: "b.0: a",
		`{"unknown":"form"}`:                     `{"unknown":"form"}`,
		`just text`:                              "just text",
		`<html><head><title> A &amp; B </title></head><body>c</body>`: "an HTML page: A & B",
		`<p>only <b>words</b></p><script>x()</script>`:                "an HTML page: only  words",
		``: "",
	} {
		if got := parseError([]byte(body)).message; got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"nothing":                 {nil, 0},
		"seconds":                 {map[string]string{"Retry-After": "7.5"}, 7500 * time.Millisecond},
		"a date":                  {map[string]string{"Retry-After": now.Add(9 * time.Second).Format(http.TimeFormat)}, 9 * time.Second},
		"milliseconds":            {map[string]string{"retry-after-ms": "250", "Retry-After": "1"}, 250 * time.Millisecond},
		"an allowance used up":    {map[string]string{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m3.5s"}, 63500 * time.Millisecond},
		"an allowance that lasts": {map[string]string{"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "1m"}, 0},
		"Anthropic's allowance":   {map[string]string{"anthropic-ratelimit-input-tokens-remaining": "0", "anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:21Z", "anthropic-ratelimit-requests-remaining": "4", "anthropic-ratelimit-requests-reset": "2026-01-01T00:01:00Z"}, 21 * time.Second},
		"Anthropic's, long ago":   {map[string]string{"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2025-12-31T23:59:00Z"}, 0},
		"too long":                {map[string]string{"retry-after-ms": "1e12"}, longestAsked},
		"nonsense":                {map[string]string{"retry-after-ms": "soon", "Retry-After": "later"}, 0},
	} {
		h := http.Header{}
		for k, v := range tt.header {
			h.Set(k, v)
		}
		if got := retryAfter(h, now); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	if e := parseError([]byte(`{"error":{"code":429,"details":[{"retryDelay":"37.5s"}]}}`)); e.retryAfter != 37500*time.Millisecond {
		t.Errorf("RetryInfo: %v", e.retryAfter)
	}
}

func TestSecretsStayOut(t *testing.T) {
	o := Options{APIKey: "sk-0123456789", Headers: map[string]string{"api-key": "azure-secret-key", "X-Title": "agentteam", "Authorization": "Bearer tok", "X-Gate": "bearer of-the-gate"},
		Secrets: []string{"bearer of-the-gate"}}
	u := mustURL(t, "https://me:pa%20ss%2Fword@host.test/v1?token=in-the-address")
	long := secretsOf(o, u)
	for text, want := range map[string]string{
		"Bad key sk-0123456789.":                     "Bad key ***.",
		"xsk-0123456789x":                            "x***x",
		"azure-secret-key of agentteam":              "*** of agentteam",
		"tok is no token, nor is (tok)":              "*** is no token, nor is (***)",
		"https://me:pa%20ss%2Fword@host pa ss/word":  "https://me:***@host ***",
		"see https://host.test?token=in-the-address": "see https://host.test?token=***",
		"no of-the-gate bearer":                      "no *** bearer",
		"Basic bWU6cGEgc3Mvd29yZA== is bad":          "Basic *** is bad",
		"two\n lines":                                "two lines",
	} {
		if got := long.line(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, address := range []string{"http://ghp_0123%2F45@host.test", "http://ghp_0123%2F45:@host.test"} {
		if got, want := secretsOf(Options{}, mustURL(t, address)).line("no ghp_0123/45, no ghp_0123%2F45"), "no ***, no ***"; got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	short := secretsOf(Options{APIKey: "k"}, mustURL(t, "http://host.test"))
	if got, want := short.line("chunk of k, k and kk"), "chunk of ***, *** and kk"; got != want {
		t.Errorf("a short key: %q, want %q", got, want)
	}
	if got := short.line(strings.Repeat("长", 5000)); got != strings.Repeat("长", 300)+"..." {
		t.Errorf("an endless text: %d characters", len([]rune(got)))
	}
}
