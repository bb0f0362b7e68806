package client

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/runlog"
	"agentteam/pkg/team"
)

// The folds of a few goals are kept, each until it has not been looked at for a while.
func TestChartsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c charts
		goal := func(n int) *chart { return c.of(chartOf{team: "t", goal: n}) }
		first := goal(1)
		for n := 2; n <= mostCharts; n++ {
			goal(n)
		}
		if goal(1) != first {
			t.Error("a fold that was looked at is not kept")
		}
		second := goal(2) // so that goal 3 is the one that was not looked at for longest
		third := goal(mostCharts + 1)
		if len(c.kept) != mostCharts || goal(1) != first || goal(2) != second || goal(mostCharts+1) != third {
			t.Errorf("%d are kept, and not those that were looked at last", len(c.kept))
		}
		time.Sleep(unseen - time.Millisecond)
		goal(1)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if len(c.kept) != 1 || goal(1) != first {
			t.Errorf("%d are kept once all but one were not looked at", len(c.kept))
		}
		time.Sleep(unseen)
		synctest.Wait()
		if len(c.kept) > 0 {
			t.Errorf("%d are kept that were not looked at", len(c.kept))
		}
	})
}

// The end of a goal may become known after entries behind it were read, and change.
func TestChartToAnotherEnd(t *testing.T) {
	c, err := Connect(t.Context(), Options{URL: brokertest.Server(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	tm, err := c.Make(t.Context(), NewTeam{ID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	k := c.charts.of(chartOf{team: "t", goal: 1})
	emit := func(a team.AgentID) {
		runlog.New(tm.team, nil).Emit(t.Context(), team.Event{AgentID: a, RunID: string(a), Event: team.EventBody{Type: team.RunStarted}})
	}
	read := func(what string, to *time.Time, want ...team.AgentID) {
		t.Helper()
		if err := k.read(t.Context(), tm, to); err != nil {
			t.Fatal(err)
		}
		var got []team.AgentID
		for _, l := range k.fold.Timeline(time.Now()).Lanes {
			got = append(got, l.AgentID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: lanes of %v, want %v", what, got, want)
		}
	}
	emit("ann")
	read("under way", nil, "ann")
	end := k.newest
	emit("bob")
	read("under way", nil, "ann", "bob")
	read("its end is known", &end, "ann")
	read("the same", &end, "ann")
	later := time.Now().Add(time.Hour)
	read("another end", &later, "ann", "bob")
}
