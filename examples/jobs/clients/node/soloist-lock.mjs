// The client side of a job lock, with what Node has built in. Copy it.
//
//   node soloist-lock.mjs http://127.0.0.1:4040 NAME

import { randomUUID } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'

const tries = 3 // of a question that got no answer, or 503

/** Any answer but 200. code is 'held', 'done', 'lost' and so on. */
export class Refused extends Error {
  constructor(status, answer) {
    super(`${status} ${answer.error}: ${answer.message}`)
    Object.assign(this, { status, code: answer.error })
  }
}

/** Write with lock.fence, and only while lock.left() > 0. */
export class Lock {
  #url
  #token
  #until

  /** Resolves to a lock, or rejects: then nothing may be done. */
  static async acquire(sidecar, name, ask = {}) {
    const lock = new Lock()
    lock.#url = `${sidecar}/locks/${encodeURIComponent(name)}`
    // One id for one attempt, however often it is asked for. The sidecar may outlive us,
    // and shall not renew for the dead: hence at_most_for.
    const got = await lock.#ask('POST', { request: randomUUID(), at_most_for: '30s', ...ask })
    lock.#token = got.token
    lock.fence = got.fence
    if (lock.left() < got.valid_for_ms / 2) await lock.renew() // it was long in line
    return lock
  }

  async renew() {
    await this.#ask('PUT', { token: this.#token })
  }

  /** For how many milliseconds the lock may be believed in. */
  left() {
    return this.#until - performance.now()
  }

  /** If this rejects, the lock was not held to the end, or nobody knows: undo what was done. */
  async release(done = false) {
    await this.#ask('DELETE', { token: this.#token, done })
  }

  async #ask(method, body) {
    for (let attempt = 1; ; attempt++) {
      const asked = performance.now() // the answer counts from before the question
      try {
        const answer = await fetch(this.#url, { method, body: JSON.stringify(body), signal: AbortSignal.timeout(30_000) })
        const got = await answer.json()
        if (!answer.ok) throw new Refused(answer.status, got)
        if ('valid_for_ms' in got) this.#until = asked + got.valid_for_ms
        return got
      } catch (e) {
        if ((e instanceof Refused && e.status !== 503) || attempt === tries) throw e
      }
      await sleep(200)
    }
  }
}

async function main(sidecar, name) {
  if (!name) throw new Error('usage: node soloist-lock.mjs http://127.0.0.1:4040 NAME')
  const lock = await Lock.acquire(sidecar, name, { wait: '5s' })
  console.log('fence', lock.fence)
  try {
    for (let i = 0; i < 10; i++) { // the work, in steps that are short beside valid_for_ms
      if (lock.left() <= 0) throw new Error('the lock was valid for too short a time')
      await sleep(100)
    }
  } finally {
    await lock.release()
  }
  console.log('released')
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  main(...process.argv.slice(2)).catch((e) => {
    console.error(`lock: not held, or not to the end; undo what was done: ${e.message}`)
    process.exitCode = 1
  })
}
