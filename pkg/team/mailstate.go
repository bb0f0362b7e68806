package team

// MailState is the delivery status of a message with one receiver.
type MailState string

// The delivery statuses of a message.
const (
	MailPending   MailState = "pending"   // stored, and not yet in its receiver's conversation
	MailDelivered MailState = "delivered" // in its receiver's conversation, or before the person that it is for
	MailProcessed MailState = "processed" // the receiver's model has answered with it in its prompt, or a request was approved; the person has written back
	MailRefused   MailState = "refused"   // the receiver has refused what it asks for
	MailDead      MailState = "dead"      // set aside, since its receiver could not read it
)

// MailStates returns every delivery status.
func MailStates() []MailState {
	return []MailState{MailPending, MailDelivered, MailProcessed, MailRefused, MailDead}
}
