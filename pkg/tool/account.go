package tool

import (
	"context"
	"sync"

	"agentteam/pkg/team"
)

// accountKey is the key under which a context holds the account of its call.
type accountKey struct{}

// account is that of a call under way.
type account struct {
	mu sync.Mutex
	team.Account
}

// Note lets a gate or a tool write down how the call is made that ctx is of, in
// [Result].Account; without a call it does nothing. f must be quick.
func Note(ctx context.Context, f func(a *team.Account)) {
	if a, ok := ctx.Value(accountKey{}).(*account); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		f(&a.Account)
	}
}

// accounted returns a context in which [Note] writes, and what closes the account of a call of
// tool with its result. What is noted later is lost: the call is over.
func accounted(ctx context.Context, c Call, tool string) (noting context.Context, end func(*Result)) {
	a := &account{Account: team.Account{Arguments: team.DigestOf(c.Arguments)}}
	if tool != c.Name {
		a.Tool = tool
	}
	return context.WithValue(ctx, accountKey{}, a), func(r *Result) {
		a.mu.Lock()
		defer a.mu.Unlock()
		r.Account = a.Account
		r.Account.Code = r.Code
	}
}
