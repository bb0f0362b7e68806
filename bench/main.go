// Command bench measures agentteam beside bare JetStream, and its agents beside a plain
// loop: both on one server, in one run, in turns, so that their ratio says something on
// any machine. It asserts nothing; a goal that is missed is printed as missed.
//
//	make bench
//	make bench-board BENCH=quick
//	make bench-agent BENCH=quick
//
// It is a module apart, so that what it compares with is no dependency of the programs.
//
// A Go benchmark beside the code answers "is this function faster than before?".
// These figures need several packages and the built programs at once, and end
// with a line for machines, which the go test command does not leave at the end.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentteam/pkg/store/broker/embedded"
)

// limit is far above what a bench takes; it ends one that hangs.
const limit = 15 * time.Minute

// benches are what can be run, by name.
var benches = map[string]func(context.Context, *rig) ([]figure, error){
	"board":    boardBench,
	"agent":    agentBench,
	"api":      apiBench,
	"hands":    handsBench,
	"page":     pageBench,
	"recovery": recoveryBench,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 3 && args[0] == plainCommand { // a child of the agent bench
		return plainLoop(ctx, args[1], args[2], os.Stdin)
	}
	if len(args) != 1 || benches[args[0]] == nil {
		return fmt.Errorf("name one of: %s", strings.Join(slices.Sorted(maps.Keys(benches)), ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := newRig("bin", embedded.Options{})
	if err != nil {
		return err
	}
	defer r.close()
	figures, err := benches[args[0]](ctx, r)
	if err != nil {
		return err
	}
	return report{Bench: args[0], Figures: figures}.write(os.Stdout)
}
