package team

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// words are the values of each enumerated type; "" is among them where it stands for a default.
var words = map[reflect.Type][]string{
	reflect.TypeFor[TaskStatus]():     Strings(taskStatuses[:]...),
	reflect.TypeFor[EventType]():      Strings(eventTypes...),
	reflect.TypeFor[Status]():         Strings(Active, TeamFinished, TeamFailed, TeamStopped, TeamDeleting, TeamSaved, TeamLoading),
	reflect.TypeFor[ApprovalStatus](): Strings(PlanPending, PlanApproved, PlanRejected, PlanUsed),
	reflect.TypeFor[ApprovalKind]():   Strings("", OfPlan, OfPermission, OfRespawn),
	reflect.TypeFor[CallState]():      Strings("", CallNotRun, CallUnknown),
	reflect.TypeFor[Scope]():          Strings("", Once, ForTask, Always),
	reflect.TypeFor[MemberState](): Strings(Created, Joined, Running, Stalled, Idle, WaitingAnswer, WaitingUser, WaitingApproval,
		WaitingModel, WaitingBudget, WaitingRepair, Lost, Stopped, Unknown, Unreadable),
	reflect.TypeFor[MessageType](): Strings(MsgMessage, MsgBroadcast, MsgUser, MsgShutdownRequest, MsgShutdownResponse, MsgPlanRequest, MsgPlanResponse,
		MsgTaskAssigned, MsgIdle, MsgWatchdog, MsgTaskNotification),
	reflect.TypeFor[Code]():     Strings(PermissionDenied, Conflict, Blocked, Busy, NotFound, InvalidState, InvalidArgument, BudgetExceeded, Unavailable),
	reflect.TypeFor[Backend]():  Strings("", Pool, Exec, Person),
	reflect.TypeFor[Create]():   Strings("", CreateAll, CreateLeader),
	reflect.TypeFor[Respawn]():  Strings("", RespawnAlways, RespawnAsk, RespawnRelease),
	reflect.TypeFor[Approver](): Strings("", ByLeader, ByHuman),
	reflect.TypeFor[Dialect]():  Strings("", Native, Claude),
	reflect.TypeFor[JobKind]():  Strings(JobSubagent, JobCommand),
	reflect.TypeFor[WaitFor]():  Strings("", ForPerson, ForAnswer, ForPlan, ForPermission, ForBudget, ForModel, ForMerge, ForJob),
}

// Strings returns values such as ids or statuses as strings.
func Strings[T ~string](all ...T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return out
}

// Some returns the names as a list, such as "a, b and 3 more" if there are more than most.
func Some[T ~string](names []T, most int) string {
	text := strings.Join(Strings(names[:min(len(names), most)]...), ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// Words returns all values of an enumerated type of this package, such as [TaskStatus]; nil for any other
// type. Schemas are generated from it.
func Words(of reflect.Type) []string { return slices.Clone(words[of]) }
