package api

import (
	"strconv"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// appendView appends the body of /leader, without a line's end.
func appendView(b []byte, v *elector.View) []byte {
	b = append(b, '{')
	b = appendFields(b, v)
	return append(b, '}')
}

func appendFields(b []byte, v *elector.View) []byte {
	slot, valid := 0, time.Duration(0)
	if v.Leading {
		slot, valid = v.Slot, v.ValidFor
	}
	b = append(b, `"lock":`...)
	b = appendString(b, v.Lock)
	b = append(b, `,"leader":`...)
	b = strconv.AppendBool(b, v.Leading)
	b = append(b, `,"state":`...)
	b = appendString(b, string(v.Phase))
	b = append(b, `,"name":`...)
	b = appendString(b, v.Name)
	b = append(b, `,"holder":`...)
	b = appendString(b, holder(v))
	b = append(b, `,"fence":`...)
	b = strconv.AppendUint(b, v.Fence, 10)
	b = append(b, `,"slot":`...)
	b = strconv.AppendInt(b, int64(slot), 10)
	b = append(b, `,"since":"`...)
	b = v.Since.UTC().AppendFormat(b, time.RFC3339)
	b = append(b, `","valid_for_ms":`...)
	b = strconv.AppendInt(b, valid.Milliseconds(), 10)
	b = append(b, `,"version":`...)
	b = strconv.AppendInt(b, v.Version, 10)
	b = append(b, `,"reason":`...)
	b = appendString(b, string(v.Reason))
	if v.Draining {
		b = append(b, `,"draining":true`...)
	}
	if v.HandingOver {
		b = append(b, `,"handing_over":true`...)
	}
	return b
}

// holder is who leads, as far as known. It is this pod only while it leads: a namesake in
// another cluster, or a pod that was deleted by force, is not it.
func holder(v *elector.View) string {
	if v.Leading {
		return v.Name
	}
	if v.Holder == v.Name {
		return ""
	}
	return v.Holder
}
