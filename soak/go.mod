module github.com/soloist-dev/soloist/soak

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.0.3
	github.com/soloist-dev/soloist v0.0.0
)

replace github.com/soloist-dev/soloist => ../
