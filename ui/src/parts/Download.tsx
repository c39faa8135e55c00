import { type MouseEvent, type ReactNode, useState } from 'react';
import { api, type Query, tenant } from '../api/client';
import { Problem } from './basics';

interface DownloadProps {
  path: string;
  name: string;
  query?: Query | undefined;
  label?: string | undefined;
  children?: ReactNode;
}

/** A file of the API. A link has no headers, so the page itself reads a file of another tenant. */
export function Download({ path, name, query, label, children = 'download' }: DownloadProps) {
  const [error, setError] = useState<unknown>();
  const read = async () => {
    setError(undefined);
    const url = URL.createObjectURL(await api.blob(path, query));
    const link = document.createElement('a');
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  const open = (event: MouseEvent) => {
    if (!tenant.get()) return;
    event.preventDefault();
    read().catch(setError);
  };
  return (
    <>
      <a href={api.address(path, query)} download={name} aria-label={label} onClick={open}>
        {children}
      </a>
      {error !== undefined && <Problem error={error} retry={() => void read().catch(setError)} />}
    </>
  );
}
