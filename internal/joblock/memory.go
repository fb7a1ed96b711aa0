package joblock

// remembered is how many of what has ended are remembered, for clients that repeat
// themselves.
const remembered = 1024

// memory keeps the latest that was put into it. The zero memory is empty.
type memory[K comparable, V any] struct {
	values map[K]V
	order  []K // a ring
	next   int
}

func (m *memory[K, V]) put(k K, v V) {
	if m.values == nil {
		m.values = map[K]V{}
	}
	if _, known := m.values[k]; !known {
		if len(m.order) < remembered {
			m.order = append(m.order, k)
		} else {
			delete(m.values, m.order[m.next])
			m.order[m.next] = k
			m.next = (m.next + 1) % remembered
		}
	}
	m.values[k] = v
}

func (m *memory[K, V]) get(k K) (V, bool) {
	v, ok := m.values[k]
	return v, ok
}

func (m *memory[K, V]) has(k K) bool {
	_, ok := m.values[k]
	return ok
}
