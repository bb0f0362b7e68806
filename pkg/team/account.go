package team

// Account is the audit record of a tool call: how it was made. It holds no text of the call or of its result.
type Account struct {
	Arguments string    `json:"arguments"`         // their digest, see [DigestOf]
	Tool      string    `json:"tool,omitempty"`    // its own name, where the model has called it by another
	State     CallState `json:"state,omitempty"`   // whether it was run; absent = it was
	Code      Code      `json:"code,omitempty"`    // of the error that it came to
	Exit      *int      `json:"exit,omitempty"`    // exit status of its command; -1: a signal ended it; absent: it ran none
	Sandbox   Sandbox   `json:"sandbox,omitempty"` // in which its command ran; without a command, by which it was judged; absent = none or not known
	Rule      string    `json:"rule,omitempty"`    // of the permissions that decided on it; absent = none
	Grants    []Grant   `json:"grants,omitempty"`  // by which it was let pass; also that by which a person has added Rule
	Change    *Change   `json:"change,omitempty"`  // of a file, by a file tool in a folder that members share
	Also      []Change  `json:"also,omitempty"`    // of further files by the same call
}

// Change is the effect of a file tool on a file, from which it can be shown and undone.
type Change struct {
	Path   string `json:"path"`             // relative to the workspace, with slashes
	New    bool   `json:"new,omitempty"`    // there was no such file before
	Before string `json:"before,omitempty"` // reference of the stored text that was there; "" and not New: it was not kept
	After  string `json:"after"`            // digest of what is there now, see [DigestOf]; "": the file is gone
}

// Grant is an approval that let a call pass.
type Grant struct {
	Approval string  `json:"approval"` // its id
	By       AgentID `json:"by"`       // who decided
}

// CallState states whether a call was run.
type CallState string

// The states. The zero value means that the call was run and has ended.
const (
	CallNotRun  CallState = "not_run" // its turn was interrupted before, or it had too many calls
	CallUnknown CallState = "unknown" // its process ended while it may have been under way
)

// DigestOf returns the SHA-256 of a text: "sha256:" and hexadecimal digits.
func DigestOf(text string) string { return "sha256:" + hashOf(text, wholeHash) }
