package team

import (
	"reflect"
	"slices"
)

// words are the values of the types that have only some. "" is one where it stands for a default.
var words = map[reflect.Type][]string{
	reflect.TypeFor[TaskStatus]():     texts(taskStatuses[:]...),
	reflect.TypeFor[EventType]():      texts(eventTypes...),
	reflect.TypeFor[Status]():         texts(Active, TeamFinished, TeamFailed, TeamStopped, TeamDeleting),
	reflect.TypeFor[ApprovalStatus](): texts(PlanPending, PlanApproved, PlanRejected, PlanUsed),
	reflect.TypeFor[MemberState](): texts(Created, Joined, Running, Stalled, Idle, WaitingAnswer, WaitingUser, WaitingApproval,
		WaitingModel, WaitingRepair, Lost, Stopped, Unreadable),
	reflect.TypeFor[MessageType](): texts(MsgMessage, MsgBroadcast, MsgUser, MsgShutdownRequest, MsgShutdownResponse, MsgPlanRequest, MsgPlanResponse,
		MsgTaskAssigned, MsgIdle, MsgWatchdog, MsgTaskNotification),
	reflect.TypeFor[TaskOrder](): texts(ByNumber, ByWork, ByUpdated),
	reflect.TypeFor[Code]():      texts(PermissionDenied, Conflict, Blocked, Busy, NotFound, InvalidState, InvalidArgument, BudgetExceeded, Unavailable),
	reflect.TypeFor[Backend]():   texts("", Pool, Exec, Person),
	reflect.TypeFor[Create]():    texts("", CreateAll, CreateLeader),
	reflect.TypeFor[Respawn]():   texts("", RespawnAlways, RespawnRelease),
	reflect.TypeFor[Approver]():  texts("", ByLeader, ByHuman),
	reflect.TypeFor[Dialect]():   texts("", Native, Claude),
}

func texts[T ~string](all ...T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return out
}

// Words returns all values of a type of this package that has only some, such as [TaskStatus];
// nil of any other. Schemas are made from it.
func Words(of reflect.Type) []string { return slices.Clone(words[of]) }
