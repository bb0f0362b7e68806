package team

// MailStatus is the delivery status of a message with one receiver.
type MailStatus string

// The delivery statuses of a message.
const (
	MailPending   MailStatus = "pending"   // stored, and not yet in its receiver's conversation
	MailDelivered MailStatus = "delivered" // in its receiver's conversation, or before the person that it is for
	MailProcessed MailStatus = "processed" // the receiver's model has answered with it in its prompt, or a request was approved; the person has written back
	MailRefused   MailStatus = "refused"   // the receiver has refused what it asks for
	MailDead      MailStatus = "dead"      // set aside, since its receiver could not read it
)

// MailStatuses returns every delivery status.
func MailStatuses() []MailStatus {
	return []MailStatus{MailPending, MailDelivered, MailProcessed, MailRefused, MailDead}
}
