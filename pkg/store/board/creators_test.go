package board_test

import (
	"fmt"
	"sync"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// 16 creators at once, each on a connection of its own: every call succeeds, no id
// is left out and none is given twice.
func TestCreators(t *testing.T) {
	if testing.Short() {
		t.Skip("16 creators")
	}
	const creators = 16
	each := size(40, 100)
	url := brokertest.Server(t)
	bt, err := brokertest.Connect(t, url).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	recorder := boardtest.Record(t, bt.Bucket)
	by := map[team.TaskID]string{}
	var acked []boardtest.Ack
	var mu sync.Mutex
	var wg sync.WaitGroup
	for c := range creators {
		bt, err := brokertest.Connect(t, url).Open(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		b := board.New(bt.Bucket, board.Options{})
		wg.Go(func() {
			for n := range each {
				title := fmt.Sprintf("%d/%d 任务", c, n)
				tasks, err := b.Create(t.Context(), "leader", team.NewTask{Title: title})
				if err != nil || len(tasks) != 1 || tasks[0].Title != title {
					t.Errorf("%s: created %v, %v", title, tasks, err)
					return
				}
				mu.Lock()
				if before, twice := by[tasks[0].ID]; twice {
					t.Errorf("%s was given to %s and to %s", tasks[0].ID, before, title)
				}
				by[tasks[0].ID] = title
				acked = append(acked, boardtest.AckOf(tasks[0]))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if n := recorder.Judge(t, acked...); n[team.Pending] != creators*each {
		t.Errorf("tasks by status: %v, want %d pending", n, creators*each)
	}
}
