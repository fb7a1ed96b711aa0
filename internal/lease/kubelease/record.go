package kubelease

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/soloist-dev/soloist/internal/lease"
)

const (
	prefix      = "soloist.dev/"
	noteToken   = prefix + "token"
	noteFence   = prefix + "fence"
	noteLength  = prefix + "lease-ms"
	notePodUID  = prefix + "pod-uid"
	noteAddress = prefix + "address"
	noteBurned  = prefix + "burned"

	heldMark  = "+" // behind a burned token's hash
	maxBurned = 8
	maxFence  = 1 << 53              // the first number that a reader of JSON may round
	longest   = 366 * 24 * time.Hour // a longer lease is none
)

// record is what a Lease object says about a lock. It is immutable.
type record struct {
	obj     *unstructured.Unstructured
	held    bool   // by somebody, once; whether it has run out is for observers to say
	foreign bool   // held by somebody who keeps no record as we do
	token   string // hash of the holder's; "": none that makes sense
	fence   uint64
	length  time.Duration
	holder  lease.Holder
	renewed time.Time // by the holder's wall clock
	burned  []string  // hashes of released tokens, latest first, with heldMark if it held
	write   string    // differs after each write of a holder, and after nothing else
}

func hashOf(t lease.Token) string {
	sum := sha256.Sum256([]byte(t))
	return hex.EncodeToString(sum[:sha256.Size/2])
}

func isHash(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size/2 && s == strings.ToLower(s)
}

// decode reads an object. Of what makes no sense it believes nothing: a holder that can't be
// made out holds for as long as the object says, else for fallback.
func decode(obj *unstructured.Unstructured, fallback time.Duration) record {
	notes := obj.GetAnnotations()
	spec := func(field string) string {
		s, _, _ := unstructured.NestedString(obj.Object, "spec", field) // not a string: not there
		return s
	}
	r := record{obj: obj, length: fallback}
	name := spec("holderIdentity")
	r.held = name != "" || notes[noteToken] != ""
	r.foreign = name != "" && notes[noteToken]+notes[noteFence]+notes[noteBurned] == ""
	if f, err := strconv.ParseUint(notes[noteFence], 10, 64); err == nil && f < maxFence {
		r.fence = f
	}
	if isHash(notes[noteToken]) && r.fence > 0 {
		r.token = notes[noteToken]
	}
	seconds, _, _ := unstructured.NestedInt64(obj.Object, "spec", "leaseDurationSeconds")
	if seconds > 0 && seconds <= int64(longest/time.Second) {
		r.length = time.Duration(seconds) * time.Second
	}
	if ms, err := strconv.ParseInt(notes[noteLength], 10, 64); err == nil && ms > 0 && ms <= longest.Milliseconds() {
		r.length = time.Duration(ms) * time.Millisecond
	}
	r.holder.Identity = lease.Identity{Name: name, PodUID: notes[notePodUID], Address: notes[noteAddress]}
	r.holder.Since, _ = time.Parse(time.RFC3339, spec("acquireTime"))
	r.renewed, _ = time.Parse(time.RFC3339, spec("renewTime"))
	for _, s := range strings.Fields(notes[noteBurned]) {
		if isHash(strings.TrimSuffix(s, heldMark)) && len(r.burned) < maxBurned {
			r.burned = append(r.burned, s)
		}
	}
	r.write = strings.Join([]string{string(obj.GetUID()), name, notes[noteToken], notes[noteFence], notes[noteLength], spec("renewTime")}, "\n")
	return r
}

// edit returns a copy of the object that change was made to.
func (r record) edit(change func(spec map[string]any, notes map[string]string)) *unstructured.Unstructured {
	obj := r.obj.DeepCopy()
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
	if spec == nil {
		spec = map[string]any{}
	}
	notes := obj.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	change(spec, notes)
	obj.Object["spec"] = spec
	obj.SetAnnotations(notes)
	return obj
}

// taken is the object held by another from now on.
func (r record) taken(by lease.Identity, hash string, f uint64, ttl time.Duration) *unstructured.Unstructured {
	return r.edit(func(spec map[string]any, notes map[string]string) {
		n, _, _ := unstructured.NestedInt64(r.obj.Object, "spec", "leaseTransitions")
		if n < 0 || n >= math.MaxInt32 {
			n = 0
		}
		spec["leaseTransitions"] = n + 1
		spec["holderIdentity"] = by.Name
		spec["acquireTime"] = r.stamp(spec, notes, f, ttl)
		notes[noteToken], notes[notePodUID], notes[noteAddress] = hash, by.PodUID, by.Address
	})
}

// extended is the object with a lease that begins again.
func (r record) extended(f uint64, ttl time.Duration) *unstructured.Unstructured {
	return r.edit(func(spec map[string]any, notes map[string]string) { r.stamp(spec, notes, f, ttl) })
}

// stamp makes a write of a holder, which no other is like: the renewTime of a Lease rises.
func (r record) stamp(spec map[string]any, notes map[string]string, f uint64, ttl time.Duration) string {
	now := time.Now().UTC()
	if least := r.renewed.Add(time.Microsecond); now.Before(least) && least.Sub(now) < time.Hour {
		now = least // a clock that was set back, or another's that is ahead
	}
	renewTime := now.Format(metav1.RFC3339Micro)
	spec["renewTime"] = renewTime
	spec["leaseDurationSeconds"] = int64((ttl + time.Second - 1) / time.Second)
	notes[noteFence] = strconv.FormatUint(f, 10)
	notes[noteLength] = strconv.FormatInt(int64((ttl+time.Millisecond-1)/time.Millisecond), 10)
	return renewTime
}

// gaveUp reports whether a release was sent for the token of hash, and what it found.
func (r record) gaveUp(hash string) (burned, held bool) {
	held = slices.Contains(r.burned, hash+heldMark)
	return held || slices.Contains(r.burned, hash), held
}

// released is the object with the token burned, and free if the token held it. held says
// whether its lease lasted until then.
func (r record) released(hash string, held bool) *unstructured.Unstructured {
	mark := ""
	if held {
		mark = heldMark
	}
	return r.edit(func(spec map[string]any, notes map[string]string) {
		latest := append([]string{hash + mark}, r.burned...)
		notes[noteBurned] = strings.Join(latest[:min(len(latest), maxBurned)], " ")
		if r.token != hash {
			return
		}
		for _, field := range []string{"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime"} {
			delete(spec, field)
		}
		for _, note := range []string{noteToken, noteLength, notePodUID, noteAddress} {
			delete(notes, note)
		}
	})
}
