// Package supervisor is the process that runs one command of a sandbox: this program, started again under [Name]. It confines the
// command if package sandbox requires it, counts the resources of its processes, and ends all of them: with the command, at a limit,
// when its time is over, and when the process that started it is gone.
//
// It imports little, so that its init, which never returns in a supervisor, runs before those of most other packages.
package supervisor

// Name is the first argument of a supervisor process.
const Name = "agentteam-sandbox"

// Environ is the only variable of a supervisor, which bounds its threads. Its command does not get it.
const Environ = "GOMAXPROCS=2"

// The file descriptors of a supervisor. From the first it reads a [Spec] and then how long the command may still run; at its end
// everything is killed. It writes a [Report] to the second. The third is the Landlock ruleset of a confined command, or the unix socket to which a gate
// hands out.
const (
	controlFD = 3
	reportFD  = 4
	moreFD    = 5
)

// Spec is a command, and its bounds.
type Spec struct {
	Args  []string // a program, by its path or to find in PATH of Env, and its arguments
	Env   []string // all of it, "NAME=value" each
	Under []string // a program by its path, and arguments, that runs Args and sets its environment; empty: none does
	Files [][]byte // what the file descriptors from 3 on contain
	Open  []string // paths of files that are open for reading from the descriptor after these on; what cannot be opened is empty
	Gate  bool     // whether a socket on [ProxyAddress] is handed out; Under gives the command a network namespace

	Memory    int64 // bytes of all processes together
	Processes int
	Threads   int   // of all processes together
	FileSize  int64 // bytes of each file

	Confined bool   // by the supervisor, before the command starts: else it is not, or Under does it
	Filter   []byte // of a confined command's system calls, as instructions of struct sock_filter
}

// ProxyAddress is the address of the proxy in the command's own network namespace.
const ProxyAddress = "127.0.0.1:3128"

const proxyPort = 3128

// Report states how a command has ended.
type Report struct {
	Code   int    // its exit status; -1 if a signal ended it
	How    string // "exit status 3", "signal: killed"
	Ended  End    // why the supervisor ended it
	Failed string // why the command could not be started
}

// End states why a supervisor ended a command.
type End string

// The reasons.
const (
	ByItself  End = ""
	Ordered   End = "ordered" // the time is over, or its owner is gone
	Memory    End = "memory"
	Processes End = "processes"
	Threads   End = "threads"
	FileSize  End = "file size"
)
