import {
  ArchiveQuery,
  CopiedData,
  DeletedData,
  FileEntryData,
  FileListQuery,
  FilePageData,
  FileQuery,
  FileRemoveQuery,
  FileWatchQuery,
  FileWriteQuery,
  MovedData,
  TwoPathsBody,
  TwoPathsQuery,
  UnpackedData,
  UnpackQuery,
  WrittenData,
} from '../files.ts';
import type { DaemonRoute, Routes } from './route.ts';

/** Errors of file operations, told of the path or the field at fault. Source: contract section 4, "Files". */
const FINDING = [
  'invalid_request',
  'permission_denied',
  'forbidden',
  'not_found',
  'not_a_directory',
] as const;
const READING = [...FINDING, 'is_a_directory', 'not_a_file', 'too_many_requests'] as const;
const CHANGING = [
  ...FINDING,
  'is_a_directory',
  'not_a_file',
  'conflict',
  'no_space',
  'shutting_down',
] as const;

const conditional = {
  Range: 'the bytes to send',
  'If-Range': 'send the range only of this version, otherwise everything',
  'If-Match': 'answer 412 for any other version',
  'If-None-Match': 'answer 304 for this version',
  'If-Modified-Since': 'answer 304 for what has not changed since, without If-None-Match',
  'If-Unmodified-Since': 'answer 412 for what has changed since, without If-Match',
};
const download = {
  query: FileQuery,
  headers: conditional,
  answer_headers: { ETag: 'the version of the file', 'Last-Modified': 'when the file was last changed' },
  errors: [...READING, 'precondition_failed', 'range_not_satisfiable'],
} as const;
const unchanged = 'the caller has this version already';
const upload = {
  query: FileWriteQuery,
  data: WrittenData,
  also: { 201: 'with mkdir: the directory is there, and created says whether it was made' },
  body_media: 'application/octet-stream',
  answer_headers: { ETag: 'the version of the written file' },
  headers: {
    'If-Match': 'write only over this version',
    'If-None-Match': '*: write only where there is nothing',
    'If-Unmodified-Since': 'write only over what has not changed since, without If-Match',
  },
  errors: [...CHANGING, 'already_exists', 'precondition_failed', 'too_many_requests'],
} as const;
const two_paths = {
  query: TwoPathsQuery,
  body: TwoPathsBody,
  example: { source: '/work/main.py', destination: '/work/old.py', overwrite: true },
} as const;

const tag = 'files' as const;
/** Reads of files, which paused sandboxes answer too, and changes. */
const reading = { tag, access: 'read', passed: { answered_by: 'up', is_use: true, way: 'files' } } as const;
const changing = {
  tag,
  access: 'write',
  passed: { answered_by: 'running', is_use: true, way: 'files' },
} as const;

/**
 * File operations. Contract section 4, "Files". A module of their own: the processes of accounts serve nothing else.
 */
export const FILE_ROUTES = {
  downloadFile: {
    method: 'GET',
    path: '/api/v1/files',
    ...reading,
    summary: 'Download a file',
    media: 'application/octet-stream',
    also: { 206: 'the range that was asked for', 304: unchanged },
    ...download,
  },
  headFile: {
    method: 'HEAD',
    path: '/api/v1/files',
    ...reading,
    summary: 'Ask for the size and version of a file',
    also: { 304: unchanged },
    ...download,
  },
  statFile: {
    method: 'GET',
    path: '/api/v1/files/stat',
    ...reading,
    summary: 'Describe a path',
    query: FileQuery,
    data: FileEntryData,
    errors: FINDING,
  },
  listFiles: {
    method: 'GET',
    path: '/api/v1/files/list',
    ...reading,
    summary: 'List a directory',
    query: FileListQuery,
    data: FilePageData,
    errors: FINDING,
  },
  downloadArchive: {
    method: 'GET',
    path: '/api/v1/files/archive',
    ...reading,
    summary: 'Download a directory as an archive',
    query: ArchiveQuery,
    media: 'application/x-tar',
    errors: [...READING, 'conflict'],
  },
  watchFiles: {
    method: 'GET',
    path: '/api/v1/files/watch',
    ...reading,
    summary: 'Watch directories over a WebSocket',
    query: FileWatchQuery,
    status: 101,
    errors: ['invalid_request', 'permission_denied'],
  },
  removeFile: {
    method: 'DELETE',
    path: '/api/v1/files',
    ...changing,
    summary: 'Remove a file or directory',
    query: FileRemoveQuery,
    data: DeletedData,
    errors: [...FINDING, 'conflict', 'directory_not_empty', 'shutting_down'],
  },
  moveFile: {
    method: 'POST',
    path: '/api/v1/files/move',
    ...changing,
    summary: 'Move a file or directory',
    ...two_paths,
    data: MovedData,
    errors: [...CHANGING, 'already_exists', 'directory_not_empty'],
  },
  copyFile: {
    method: 'POST',
    path: '/api/v1/files/copy',
    ...changing,
    summary: 'Copy a file or directory',
    ...two_paths,
    data: CopiedData,
    errors: [...CHANGING, 'already_exists', 'directory_not_empty', 'too_many_requests'],
  },
  createFile: {
    method: 'POST',
    path: '/api/v1/files',
    ...changing,
    summary: 'Write a file, or make a directory with mkdir=true',
    ...upload,
  },
  writeFile: { method: 'PUT', path: '/api/v1/files', ...changing, summary: 'Write a file', ...upload },
  uploadArchive: {
    method: 'PUT',
    path: '/api/v1/files/archive',
    ...changing,
    summary: 'Unpack an archive into a directory',
    query: UnpackQuery,
    data: UnpackedData,
    body_media: 'application/x-tar',
    errors: [...CHANGING, 'too_many_requests'],
  },
} as const satisfies Routes<DaemonRoute>;
