package tool

import (
	"context"
	"sync"

	"agentteam/pkg/team"
)

// accountKey is the key under which a context holds the account of its call.
type accountKey struct{}

// account is the account of a call that runs.
type account struct {
	mu sync.Mutex
	team.Account
}

// Note lets a gate or a tool record how the call of ctx is made, in [Result].Account; without a call it does nothing. f
// must be quick.
func Note(ctx context.Context, f func(a *team.Account)) {
	if a, ok := ctx.Value(accountKey{}).(*account); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		f(&a.Account)
	}
}

// accounted returns a context for [Note], and a function that stores the account of the call in its result. Later notes
// are lost: the call is over.
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
